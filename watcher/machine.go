package watcher

import (
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// state is all that the machine knows: the resource versions, and its two halves,
// the feed, which lists and watches, and the proof, which shows that the feed brings
// everything. The audit is a part of the proof. The zero value is the state before
// the first request.
type state struct {
	marks marks
	feed  feed
	proof proof
	audit audit
}

// effects is what a step wants done. The zero value is nothing.
type effects struct {
	revoke  invalidation.Decision // if it revokes or drops
	cause   error                 // of the revocation
	publish publication           // what becomes of the set being built
	begin   bool                  // a new set
	discard bool                  // the set being built
	request request               // replaces whatever is open or under way
	pause   pause                 // before the next attempt
	advance bool                  // progress was made: the next backoff starts over
	extend  bool                  // the phase's limit starts over
	follow  bool                  // the stream is open: events are received from here on
	// noWatchList is why no WatchList is asked for any more, if that is news.
	noWatchList error

	reconnect bool // the connection is to be given up as well
	heard     bool // a proof has shown that the server is there

	endProof bool          // close what the proof under way has asked
	endPeeks bool          // and the peeks that would go on
	ask      question      // what the proof asks, if anything
	wait     time.Duration // how long the proof's stage may take; zero leaves it
	answered bool          // the server told its version: the proof goes by this question
	moved    bool          // the set's version moved forward without an event
	proven   bool          // as of when the question was asked, or the audit if audited
	audited  bool          // as of when the audit was asked for
	failed   bool          // the proof came to nothing
	rest     error         // why the next try of the proof comes after a pause, if it does

	endAudit  bool          // forget the audit
	askAudit  auditQuestion // what the audit asks, if anything
	auditWait time.Duration // how long the audit's stage may take; zero leaves it
}

// request is what the feed asks of the server.
type request int

const (
	noRequest  request = iota
	askPage            // the next page of the list
	askInitial         // a WatchList
	askWatch           // a watch from the set's version
)

// publication is what becomes of the set being built.
type publication int

const (
	notPublished publication = iota
	granted                  // it is published, and its token made ready
	ungranted                // it is published, and its token waits for a proof
	confirmed                // it was published, and its token need not wait any more
)

// pause is how long the feed waits before its next attempt.
type pause int

const (
	noPause pause = iota
	soon          // a moment, so that many replicas do not come at once
	backOff       // longer each time without progress
)

// move is a step in the making: the state that it leads to, and what is to be done
// for it. The two halves write their own part of the state, and the marks.
type move struct {
	state
	out    effects
	decide func(invalidation.Observation) invalidation.Decision
}

// step is the state machine. It has no side effects; decide is the policy.
//
// An observation is either the feed's or the proof's. What the proof concludes is
// for the feed to act on, and what the feed does may be what the proof waits for, or
// what allows one to begin.
func (s state) step(o observation, decide func(invalidation.Observation) invalidation.Decision) (state, effects) {
	m := move{state: s, decide: decide}
	switch {
	case o.kind >= auditWanted:
		m.conclude(m.auditStep(o))
	case o.kind >= proofWanted:
		m.conclude(m.proofStep(o))
	default:
		m.feedStep(o)
		if m.feed.held {
			m.compareAgain()
			m.conclude(m.arrived(o.content))
		}
	}
	m.beginProof()
	return m.state, m.out
}

// conclude acts on what the proof or the audit came to.
func (m *move) conclude(v verdict) {
	switch v.kind {
	case noVerdict:
	case proven:
		m.feed.stucks, m.feed.pending, m.feed.implausible = 0, false, false
		m.feed.quiet = m.feed.phase == opening
	case alive:
		m.out.heard = true
	case unproven:
		m.out.failed, m.out.rest = true, v.err
		if v.silent {
			m.silenced(v.err)
		}
	case behind:
		m.out.failed = true
		m.lagging(v.err)
	case rewound:
		m.out.failed = true
		m.rewound(v.err)
	case diverged:
		m.out.failed = true
		m.feed.listOnce = true // by a request that is no stream, which brought what is wrong
		if m.feed.implausible {
			m.feed.noWatchList, m.out.noWatchList = true, v.err
		}
		d := m.judge(invalidation.SetDiverged, v.err)
		m.retreat(d.Recovery == invalidation.ListAll)
	case refused:
		m.out.failed = true
		m.fail(v.err, v.verb)
	}
}

// verdict is what a proof or an audit came to.
type verdict struct {
	kind   verdictKind
	err    error
	verb   verb // of the request that was refused
	silent bool // the proof was to explain a silence
}

type verdictKind int

const (
	noVerdict verdictKind = iota // it goes on, or there is none
	proven                       // the set holds everything
	alive                        // nothing is proven, but the server is there, which is all that was asked
	unproven                     // it could not be made; nothing is known to be wrong
	behind                       // the watch does not bring what the server has
	rewound                      // the server went back in time
	diverged                     // the set is wrong at a version that it claims to be complete at
	refused                      // the server does not serve this store any more
)
