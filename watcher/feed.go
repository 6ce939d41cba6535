package watcher

import (
	"fmt"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
)

// phase is what the feed is doing.
type phase int

const (
	// listing asks for the set page by page. Nothing is open.
	listing phase = iota
	// streaming receives the set through a WatchList.
	streaming
	// opening asks for a watch from the set's version. The set is complete: it is
	// published already, or will be when the watch is open.
	opening
	// watching receives events into the published set.
	watching
	// waiting sits out a pause before the next attempt. Nothing is open.
	waiting
)

// String returns what a person reads in a status.
func (p phase) String() string {
	return [...]string{"listing", "streaming the initial set", "opening a watch", "watching", "waiting to retry"}[p]
}

// feed is the half of the machine that lists, watches, resumes and lists again.
type feed struct {
	phase phase

	held    bool // the sink has a published set to go on with
	built   bool // a set is complete but not yet published
	pending bool // the published set waits for its watch, or for a proof, to be ready

	implausible bool // the newest set takes an audit to be believed

	// What is known about the list in progress.
	next        string // continue token
	pageVersion string // the version that every page must have
	restarts    int    // begun again because a continue token did not last
	came        bool   // the WatchList has brought what is no initial event

	// What is known about WatchLists.
	unmarked    int  // how many in a row ended without their marker
	suspect     bool // one was silent before its marker: if a LIST is answered, it is at fault
	noWatchList bool // WatchList does not work here, for reasons that will not go away
	listOnce    bool // the next set comes by LIST

	// What is known about watches.
	late   bool // the one that is being opened takes its time
	quiet  bool // and a proof has shown meanwhile that there is nothing to bring
	timely bool // the last one ended when its time was up, in the server's own way
	abrupt int  // how many in a row ended within a second, though something had come
	barren int  // how many in a row failed or ended at once, without progress
	stucks int  // how many in a row were found stuck

	denied  verb // what the server has refused to grant, until it grants it again
	expired bool // the version has expired since the last progress
}

// maxRestarts is how often a list whose continue token expires is begun again in
// pages. Then everything is asked for in one.
const maxRestarts = 2

// maxUnmarked is how many WatchLists in a row may end without their marker before
// no other is asked for.
const maxUnmarked = 3

// maxBarren is how many watches in a row may fail or end at once, before the version
// they were opened from is given up.
const maxBarren = 3

// maxStucks is how many watches in a row may be found stuck before the set is listed
// anew instead.
const maxStucks = 3

// feedStep is the first half of the state machine: all arrows of the feed are in this
// switch.
func (m *move) feedStep(o observation) {
	f := &m.feed
	m.proof.fake = m.proof.fake || o.fake
	switch o.kind {
	case stale:
		m.outOfTouch(o.err)
		return
	case silent:
		if f.held {
			m.nothingHeard()
		} else {
			m.outOfTouch(o.err)
		}
		return
	case relistAsked:
		if f.phase == waiting {
			f.held, f.built = false, false // the pause stands: a caller cannot talk it away
		} else {
			m.build()
		}
		return
	}
	switch f.phase {
	case listing:
		m.whileListing(o)
	case streaming:
		m.whileStreaming(o)
	case opening:
		m.whileOpening(o)
	case watching:
		m.whileWatching(o)
	case waiting:
		if o.kind == waited {
			m.proceed()
		} else {
			m.impossible(o)
		}
	}
}

func (m *move) whileListing(o observation) {
	switch o.kind {
	case pageListed:
		m.page(o)
	case failed:
		m.feed.suspect = false // no server that serves lists better than streams
		if m.feed.next != "" && isExpired(o.err) {
			m.restartList()
		} else {
			m.fail(o.err, listVerb)
		}
	case timedOut:
		m.feed.suspect = false
		m.out.reconnect = true
		m.fail(o.err, listVerb)
	default:
		m.impossible(o)
	}
}

func (m *move) whileStreaming(o observation) {
	f := &m.feed
	switch o.kind {
	case streamOpened, initialAdded, bookmarked:
		// Only the marker says that the set is complete. It is waited for anew with each
		// object there was, not with what happens now.
		f.came = f.came || o.live
		m.out.extend = !f.came
		m.granted(watchVerb)
	case initialEnd:
		if !versions.Resumable(o.version) {
			m.withoutWatchList(errBareMarker)
			return
		}
		f.unmarked = 0
		m.complete(o)
		if f.built {
			m.publish(true)
			m.follow()
		}
	case streamEnded:
		// This server's way, or cut on the way: client-go does not say. At once and for
		// the first time, it is believed to have been cut.
		f.unmarked++
		if o.end >= abrupt && f.unmarked < maxUnmarked {
			f.listOnce = true
			m.build()
		} else {
			m.withoutWatchList(errNoMarker)
		}
	case timedOut:
		// The network may be what is silent. If a LIST is answered now, it is not.
		m.out.reconnect = true
		f.unmarked++
		f.suspect, f.listOnce = true, true
		m.build()
	case failed:
		if rejectsWatchList(o.err) {
			m.withoutWatchList(o.err)
		} else {
			f.listOnce = isServerFault(o.err) // as some serve lists better than streams
			m.fail(o.err, watchVerb)
		}
	default:
		m.impossible(o)
	}
}

func (m *move) whileOpening(o observation) {
	f := &m.feed
	switch {
	case o.kind == streamOpened:
		m.granted(watchVerb)
		if f.built {
			m.publish(true)
		}
		m.follow()
	case o.kind == timedOut && !f.late && f.denied != watchVerb:
		// Some proxies hold the headers of a watch back until its first event. What is
		// complete need not wait for that, if it can be proven.
		f.late = true
		m.out.extend = true
		m.proof.resting = false // the watch is not what will settle it
		if f.built {
			m.publish(false)
		}
	case o.kind == timedOut && f.quiet:
		// Nothing was there to be brought: that is no failure, but may be a request that
		// nobody will answer.
		m.out.reconnect = true
		m.doubt()
		m.reopen(nil, soon)
	case o.kind == timedOut:
		m.out.reconnect = true
		m.fail(o.err, watchVerb)
	case o.kind == failed:
		if f.built && isUnprocessable(o.err) {
			o.err = &unwatchable{o.err} // from the version of a list that it has just made
		}
		m.broken(o.err)
	default:
		m.impossible(o)
	}
}

func (m *move) whileWatching(o observation) {
	switch o.kind {
	case changed, bookmarked:
		m.advance(o)
	case streamEnded:
		m.ended(o)
	case timedOut:
		// The watch's own time is up, and the server did not end it: it may have stopped
		// listening long ago.
		m.out.reconnect = true
		m.doubt()
		m.reopen(nil, noPause)
	case failed:
		m.broken(o.err)
	default:
		m.impossible(o)
	}
}

// impossible answers an observation that its phase cannot bring. It is a bug of
// this package, and even then nobody is shown a set that may be wrong.
func (m *move) impossible(o observation) {
	m.fail(&unusable{fmt.Errorf("bug: observation %d while %v", o.kind, m.feed.phase)}, noVerb)
}

// judge asks the policy and takes note of what it wants done to the token.
func (m *move) judge(seen invalidation.Sighting, err error) invalidation.Decision {
	d := m.decide(invalidation.Observation{Seen: seen, Err: err, ResourceVersion: m.marks.complete})
	if d.Revoke != "" || d.Drop {
		m.out.revoke, m.out.cause = d, err
	}
	return d
}
