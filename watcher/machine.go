package watcher

import (
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/internal/versions"
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
const maxUnmarked = 2

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

// move is a step in the making.
type move struct {
	state
	effects
	decide func(invalidation.Observation) invalidation.Decision
}

// proceed begins the next attempt: a watch if there is a set to resume, else a
// new set.
func (m *move) proceed() {
	if m.held && versions.Resumable(m.version) {
		m.phase = opening
		m.request = askWatch
		return
	}
	if m.held {
		m.judge(invalidation.VersionExpired, errUnversioned)
	}
	m.build()
}

// build begins a new set.
func (m *move) build() {
	m.abandonProof()
	m.doubt = false // a new set needs no proof
	m.held, m.built = false, false
	m.effects.begin = true
	m.state.next, m.pageVersion, m.live = "", "", false
	if m.noWatchList || m.listOnce {
		m.phase = listing
		m.request = askPage
		return
	}
	m.phase = streaming
	m.request = askInitial
}

// page takes a page of the list, and asks for the next one or completes the set.
func (m *move) page(o observation) {
	if m.pageVersion != "" && o.version != m.pageVersion {
		m.restartList() // pages of two versions make no set (C31)
		return
	}
	m.pageVersion = o.version
	m.state.next = o.next
	if o.next != "" {
		m.request = askPage
		return
	}
	m.restarts = 0
	m.listOnce = false
	m.complete(o.version)
	if m.built {
		m.phase = opening
		m.request = askWatch
	}
}

// restartList lists again from the first page. That is bounded: after
// maxRestarts the driver asks for everything in one page.
func (m *move) restartList() {
	m.restarts++
	if m.restarts > maxRestarts+1 {
		m.restarts = 0
		m.fail(&unusable{errRestarted})
		return
	}
	m.state.next, m.pageVersion = "", ""
	m.effects.begin = true
	m.request = askPage
}

// complete takes note that a whole set is there. A set from before what was
// published means that the server was rewound, since the set came by a
// consistent read: the next one is taken as it comes.
func (m *move) complete(version string) {
	if m.floor != "" && versions.Older(version, m.floor) {
		m.rewound(fmt.Errorf("resource version %s after %s: %w", version, m.floor, ErrOutOfOrder))
		return
	}
	m.version = version
	m.built = true
}

// rewound forgets what the server was and lists anew.
func (m *move) rewound(cause error) {
	m.judge(invalidation.VersionRewound, cause)
	m.floor = ""
	m.build()
}

// publish makes the built set the held one.
func (m *move) publish() {
	m.effects.publish = true
	m.held, m.built = true, false
	m.floor = m.version
	m.stucks = 0
}

// follow begins to receive events. That a watch which ended in time could be
// resumed is a sign of life (C3); that one which was cut could be is not, as
// whatever cut it may have accepted the next one too.
func (m *move) follow() {
	m.phase = watching
	m.effects.follow = true
	m.effects.heard = m.timely
	m.timely = false
	if m.doubt && m.proof.stage == idle {
		m.startProof(false)
	}
}

// advance moves the set's version forward; events of fake clientsets have none.
func (m *move) advance(version string) {
	if version != "" {
		m.version = version
		m.floor = versions.Newest(version, m.floor)
	}
	m.briefs, m.faults, m.expired = 0, 0, false
	m.effects.advance = true
	m.progressed()
}

// ended deals with a watch that was closed without an error. Closing is routine;
// closing at once and with nothing in it, again and again, is how some servers
// say that the version is gone (C32).
func (m *move) ended(o observation) {
	if !o.brief && !o.dropped {
		m.briefs = 0
		m.timely = o.timely
		m.reopen(nil)
		return
	}
	if o.dropped {
		m.reopen(errDropped)
		return
	}
	m.briefs++
	if m.briefs >= maxBriefs {
		m.briefs = 0
		m.fail(errBrief)
		return
	}
	m.reopen(errBrief)
}

// reopen resumes a watch that ended in the ordinary way, after a pause if there
// was something wrong with it.
func (m *move) reopen(cause error) {
	d := m.judge(invalidation.StreamEnded, cause)
	m.doubt = m.doubt || d.Revoke != ""
	if d.Recovery == invalidation.ListAll {
		m.held = false
	}
	if cause != nil {
		m.abandonProof()
		m.phase, m.pause = waiting, true
		return
	}
	m.proceed()
}

// broken deals with a watch that ended with an error. A server that breaks it off
// again and again from the same version is asked for a new list.
func (m *move) broken(err error) {
	if isServerFault(err) && !isUndecodable(err) && !isTooLarge(err) {
		m.faults++
		if m.faults >= maxFaults {
			m.faults = 0
			err = fmt.Errorf("%w: %w", errStillBroke, err)
		}
	}
	m.fail(err)
}

// fail deals with a failed attempt: the policy decides what it means for the
// token, and the next attempt comes after a pause.
func (m *move) fail(err error) {
	seen := sight(err)
	d := m.judge(seen, err)
	if seen == invalidation.VersionRewound {
		m.floor = ""
	}
	m.retreat(d.Recovery == invalidation.ListAll, err)
	if seen == invalidation.VersionExpired {
		// An answer to be expected after any restart of a server, and readers wait
		// for the list: the first time it is begun at once.
		m.soon = !m.expired
		m.expired = true
	}
}

// retreat ends what is under way and pauses before the next attempt: a new list,
// or a new stream, which is then to be proven.
func (m *move) retreat(list bool, err error) {
	m.abandonProof()
	m.built = false
	m.doubt = true
	if list {
		m.held = false
	}
	m.phase = waiting
	m.pause = true
	m.atLeast = retryAfter(err)
}

// outOfTouch ends the token because the store has been without a sign of life,
// or without a proof, for too long. What is under way goes on: it is what will
// bring the next proof.
func (m *move) outOfTouch(err error) {
	m.judge(invalidation.OutOfTouch, err)
	m.doubt = true
	if m.phase == watching && m.proof.stage == idle {
		m.startProof(false)
	}
}

// failOrRelist is for the listing phase, where a new list is begun either way.
func (m *move) failOrRelist(o observation) {
	if o.kind == relistAsked {
		m.build()
		return
	}
	m.fail(o.err)
}

// withoutWatchList turns to LIST, for good.
func (m *move) withoutWatchList(why error) {
	m.noWatchList = true
	m.why = why.Error()
	m.build()
}

// judge asks the policy and takes note of what it wants done to the token.
func (m *move) judge(seen invalidation.Sighting, err error) invalidation.Decision {
	d := m.decide(invalidation.Observation{Seen: seen, Err: err, ResourceVersion: m.version})
	if d.Revoke != "" || d.Drop {
		m.revoke, m.cause = d, err
	}
	return d
}

// impossible answers an observation that its phase cannot bring. It is a bug of
// this package, and even then nobody is shown a set that may be wrong.
func (m *move) impossible(o observation) {
	m.fail(&unusable{fmt.Errorf("bug: observation %d while %v", o.kind, m.phase)})
}
