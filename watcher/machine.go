package watcher

import (
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// phase is what a Watcher is doing.
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
	// waiting sits out a backoff before the next attempt. Nothing is open.
	waiting
)

// String returns what a person reads in a status.
func (p phase) String() string {
	return [...]string{"listing", "streaming the initial set", "opening a watch", "watching", "waiting to retry"}[p]
}

// state is all that the machine knows. The zero value is the state before the
// first request.
type state struct {
	phase phase

	// version is that of the set: of the published one if held, of the one that
	// is built if built. A watch is opened from it.
	version string
	held    bool // the sink has a published set to go on with
	built   bool // a set is complete but not yet published

	// floor is the highest version ever published. A lower one is a rewind.
	floor string

	// What is known about the list in progress.
	next        string // continue token
	pageVersion string // the version that every page must have
	restarts    int    // begun again because a continue token did not last (C31)

	live        bool   // the WatchList has brought what is no initial event
	unmarked    int    // WatchLists in a row that ended without their marker
	noWatchList bool   // WatchList does not work here, for reasons that will not go away
	why         string // noWatchList, in words
	listOnce    bool   // the server failed over a WatchList: the next set comes by LIST

	expired bool // the version has expired since the last progress
	timely  bool // the last watch ended when its time was up
	briefs  int  // watches in a row that were brief
	faults  int  // watches in a row that the server broke off, without progress
	stucks  int  // times in a row that the stream was found stuck

	// doubt says that the stream is a new one after trouble: it is proven before
	// anything else is believed of it.
	doubt bool
	proof proof
	// noBookmarks says that the last peek ended without one.
	noBookmarks bool
	bounded     bool // there is a MaxStaleness; never changes
	tight       bool // and it is hardly longer than a proof takes; never changes
	small       bool // the set came in one page, or would have
}

// effects is what a step wants done. The zero value is nothing.
type effects struct {
	revoke  invalidation.Decision // if it revokes or drops
	cause   error                 // of the revocation
	publish bool                  // the set being built
	begin   bool                  // a new set
	request request               // replaces whatever is open or under way
	pause   bool                  // back off first
	soon    bool                  // for a moment only
	atLeast time.Duration         // shortest pause, as the server asked
	advance bool                  // progress was made: the next backoff starts over
	extend  bool                  // the phase's limit starts over

	probe     probe         // what the proof asks, if anything
	stageTime time.Duration // how long the proof's stage may take; zero leaves it
	moved     bool          // the set's version moved forward without an event
	proven    bool          // as of when the proof was asked for
	answered  bool          // the server told its version
	unproven  bool          // the proof failed, and is tried again later
	fruitless bool          // the proof failed, whatever comes of it
	follow    bool          // the stream is open: events are received from here on
	heard     bool          // the server gave a sign of life, beyond what it sends
	reconnect bool          // the connection is to be given up as well
	excused   bool          // nothing can be proven here: silence is no sign
}

// request is what is asked of the server.
type request int

const (
	noRequest  request = iota
	askPage            // the next page of the list
	askInitial         // a WatchList
	askWatch           // a watch from the set's version
)

// maxRestarts is how often a list whose continue token expires is begun again in
// pages. Then everything is asked for in one.
const maxRestarts = 2

// maxUnmarked is how many WatchLists in a row may end without their marker before
// no other is asked for.
const maxUnmarked = 3

// maxBriefs and maxFaults are how many watches in a row may end at once, or with
// a fault of the server, before the version they were opened from is given up
// (C32).
const (
	maxBriefs = 3
	maxFaults = 3
)

// step is the state machine: all arrows are in this switch. It has no side
// effects; decide is the policy.
func (s state) step(o observation, decide func(invalidation.Observation) invalidation.Decision) (state, effects) {
	m := move{state: s, decide: decide}
	switch {
	case o.kind >= proofWanted:
		if s.phase == watching || s.phase == opening && s.held {
			m.prove(o)
			m.fruitless = s.proof.stage != idle && m.proof.stage == idle && !m.effects.proven && !m.excused && !m.heard
		} else if o.kind == proofWanted {
			m.doubt = true // when there is a stream to prove
		}
		return m.state, m.effects
	case o.kind == stale, o.kind == silent && s.phase != watching:
		m.outOfTouch(o.err)
		return m.state, m.effects
	}
	switch s.phase {
	case listing:
		switch o.kind {
		case pageListed:
			m.page(o)
		case failed:
			if s.next != "" && isExpired(o.err) {
				m.restartList()
			} else {
				m.fail(o.err)
			}
		case timedOut, relistAsked:
			m.failOrRelist(o)
		default:
			m.impossible(o)
		}

	case streaming:
		switch o.kind {
		case streamOpened, initialAdded, bookmarked:
			// Only the marker says that the set is complete (C9). It is waited for
			// anew with each object there was, not with what happens now.
			m.live = s.live || o.live
			m.extend = !m.live
		case initialEnd:
			m.unmarked = 0
			m.complete(o.version)
			if m.built {
				m.publish()
				m.follow()
			}
		case streamEnded:
			// This server's way (C9), or cut on the way: client-go does not say. At once
			// and for the first time, it is believed to have been cut.
			m.unmarked++
			if !o.long && m.unmarked < maxUnmarked {
				m.listOnce = true
				m.build()
			} else {
				m.withoutWatchList(errNoMarker)
			}
		case timedOut:
			m.withoutWatchList(o.err)
		case failed:
			if rejectsWatchList(o.err) {
				m.withoutWatchList(o.err)
			} else {
				m.listOnce = isServerFault(o.err) // as some serve lists better than streams
				m.fail(o.err)
			}
		case relistAsked:
			m.build()
		default:
			m.impossible(o)
		}

	case opening:
		switch o.kind {
		case streamOpened:
			if s.built {
				m.publish()
			}
			m.follow()
		case timedOut:
			if s.built {
				// Some proxies hold the headers of a watch back until its first
				// event. A complete list need not wait for that.
				m.publish()
			} else {
				m.fail(o.err)
			}
		case failed:
			m.fail(o.err)
		case relistAsked:
			m.build()
		default:
			m.impossible(o)
		}

	case watching:
		switch o.kind {
		case changed, bookmarked:
			m.noBookmarks = m.noBookmarks && o.kind != bookmarked
			m.advance(o.version)
		case streamEnded:
			m.ended(o)
		case timedOut: // the watch's own time is up, and the server did not end it
			m.timely = true
			m.reopen(nil)
		case failed:
			m.broken(o.err)
		case silent:
			m.prove(o)
		case relistAsked:
			m.build()
		default:
			m.impossible(o)
		}

	case waiting:
		switch o.kind {
		case waited:
			m.proceed()
		case relistAsked:
			m.held = false // the pause stands: a caller cannot talk it away
		default:
			m.impossible(o)
		}
	}
	return m.state, m.effects
}
