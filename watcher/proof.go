package watcher

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
)

// stage is how far a proof has come. The arrows are in proofStep.
type stage int

const (
	idle     stage = iota // no proof is under way
	asking                // waiting for the server's version
	settling              // waiting for the stream to reach it
	peeking               // waiting for what the peek brings
	missing               // something was brought that the set does not reflect: the stream is waited for
	auditing              // waiting for an audit that was begun for it
)

// String returns what a person reads in a status.
func (s stage) String() string {
	return [...]string{"", "asking for the server's version", "waiting for the watch to reach it",
		"looking for what the watch missed", "waiting for the watch to bring what it missed",
		"listing to compare"}[s]
}

// The times that a proof takes at most. A live server answers within
// milliseconds, and sends its bookmark after one to two seconds.
const (
	askTime    = 5 * time.Second
	settleTime = 100 * time.Millisecond
	peekLength = 3 * time.Second // the shortest watch that gets a bookmark
	peekTime   = peekLength + 500*time.Millisecond
	tightTime  = 250 * time.Millisecond // of peeking, before the version is asked for again
	missTime   = time.Second
)

// maxAsks is how often a tight proof asks for the version before it gives up waiting
// for a bookmark.
const maxAsks = 7

// proof is the half of the machine that shows that the set holds everything. It works
// on a published set in every phase of the feed. The zero value owes nothing and has
// nothing under way.
type proof struct {
	owed    debts // to whom a proof is owed that has not begun
	paying  debts // whom the proof under way will have paid
	resting bool  // the last one failed: the next one waits for its time

	stage  stage
	floor  string // the highest version seen before the question: a lower answer is a rewind
	target string // the newest version that the server told; empty if none yet
	awaits bool   // something was brought that the set does not reflect
	asks   int    // how often a tight proof has asked for the version again

	deaf  bool // the last peek ended without a bookmark
	small bool // the set comes in one page

	tight bool // MaxStaleness is hardly longer than a proof takes; never changes
	fake  bool // versions of this source tell nothing; never changes once it is known
}

// question is what a proof asks of the server.
type question int

const (
	noQuestion question = iota
	askLatest           // the server's version, and its first object
	askPeek             // a peek
)

// beginProof begins a proof if one is owed and can be made. It is called at the end of
// each step, so that no debt depends on what made it.
//
// The doubt about a stream is settled when the stream is open, or late: before that, the
// stream itself may bring what a proof would find missing.
func (m *move) beginProof() {
	p, f := &m.proof, &m.feed
	due := p.owed
	if f.phase != watching && !(f.phase == opening && f.late) {
		due &^= doubt
	}
	if due == 0 || p.stage != idle || p.resting || !f.held {
		return
	}
	p.paying, p.owed = p.owed, 0
	p.floor, p.target, p.asks = m.marks.seen, "", 0
	if p.fake || !m.marks.resumable() || p.paying&contents != 0 {
		m.askForAudit()
		return
	}
	m.ask(askLatest, asking, askTime)
}

// nothingHeard takes note of a silence. The proof under way is to explain it, or the next
// one, which then comes at once.
func (m *move) nothingHeard() {
	p := &m.proof
	if p.stage == idle {
		p.owed |= silence
		p.resting = false
		return
	}
	p.paying |= silence
}

// ask goes on to a stage with a question, if any, and says how long it may take.
func (m *move) ask(q question, s stage, limit time.Duration) {
	m.proof.stage, m.out.ask, m.out.wait = s, q, limit
}

// askForAudit goes on with an audit, which shows what versions cannot.
func (m *move) askForAudit() {
	m.out.endProof, m.out.endPeeks = true, true
	m.out.ask, m.out.wait = noQuestion, 0
	m.proof.stage, m.proof.awaits = auditing, false
	m.beginAudit(true)
}

// proofStep is the second half of the state machine: all arrows of the proof are in
// this switch.
func (m *move) proofStep(o observation) verdict {
	p := &m.proof
	switch o.kind {
	case proofWanted:
		p.owed |= o.by
	case proofDue:
		p.resting = false
		p.owed |= o.by
	case proofListed:
		if p.stage == asking {
			return m.listed(o)
		}
	case proofMissed:
		p.awaits = true
		if p.stage == settling || p.stage == peeking {
			m.ask(noQuestion, missing, missTime)
		}
	case proofCaught:
		p.awaits = false
		if p.stage == missing {
			m.ask(noQuestion, settling, settleTime)
		}
		return m.arrived(Agrees)
	case proofReached:
		p.deaf = p.deaf && o.version == ""
		if p.stage != idle && p.stage != auditing && p.target != "" && versions.Reached(o.version, p.target) {
			return m.reached(o)
		}
	case proofEnded:
		if p.stage == peeking && !p.tight {
			return m.inconclusive(nil)
		}
	case peekFailed:
		return m.peekFailed(o)
	case proofFailed:
		if p.stage != idle {
			return m.proofFails(o.err, o.verb)
		}
	case proofLate:
		return m.late(o)
	}
	return verdict{}
}

// listed takes the answer to the question for the server's version. What it brings is
// compared with the set, by the driver.
func (m *move) listed(o observation) verdict {
	p := &m.proof
	switch {
	case versions.Older(o.version, p.floor):
		return m.endsProof(verdict{kind: rewound, err: fmt.Errorf("the server is at resource version %s, and was at %s: %w",
			o.version, p.floor, ErrOutOfOrder)})
	case !versions.Resumable(o.version), o.content == Contradicts:
		m.askForAudit()
		return verdict{}
	}
	m.marks.show(o.version)
	p.target, m.out.answered = o.version, true
	p.awaits = p.awaits || o.content == Awaits
	if p.stage == asking {
		m.ask(noQuestion, settling, settleTime)
	}
	return m.arrived(Agrees)
}

// arrived asks whether the set has come to where the proof wants it.
func (m *move) arrived(c Agreement) verdict {
	p := &m.proof
	switch {
	case p.stage == idle, p.stage == auditing, p.target == "", p.awaits, !versions.Reached(m.marks.complete, p.target):
		return verdict{}
	case c == Contradicts:
		m.askForAudit()
		return verdict{}
	}
	m.out.proven = true
	return m.endsProof(verdict{kind: proven})
}

// reached takes the bookmark of a peek: nothing happened from the set's version up to
// that of the bookmark, but for what the peek has brought.
func (m *move) reached(o observation) verdict {
	switch {
	case o.content == Contradicts:
		m.askForAudit()
		return verdict{}
	case m.proof.awaits:
		if m.proof.stage != missing {
			m.ask(noQuestion, missing, missTime)
		}
		return verdict{}
	}
	m.out.moved = m.marks.reach(o.version)
	return m.arrived(Agrees)
}

// late goes on when a stage has taken its time.
func (m *move) late(o observation) verdict {
	p := &m.proof
	switch p.stage {
	case settling:
		switch {
		case p.deaf && p.paying != silence, p.tight && p.small:
			m.askForAudit() // a peek would be inconclusive, as the last one was, or late
		case p.tight:
			m.ask(askPeek, peeking, tightTime)
		default:
			m.ask(askPeek, peeking, peekTime)
		}
	case peeking:
		if p.tight && p.asks < maxAsks {
			p.asks++
			p.floor = m.marks.seen
			m.ask(askLatest, asking, askTime)
			return verdict{}
		}
		return m.inconclusive(errPeekCut)
	case missing:
		return m.endsProof(verdict{kind: behind, err: errMissed})
	case asking:
		m.out.reconnect = true
		return m.proofFails(o.err, listVerb)
	}
	return verdict{}
}

// inconclusive is a peek that brought neither an event nor a bookmark. It was closed in
// time if err is nil: a sign of life, which is enough if silence was all there was to
// explain. A lagging server would have done the same, so it is no proof; where one is
// owed, an audit has to be it.
func (m *move) inconclusive(err error) verdict {
	p := &m.proof
	p.deaf = true
	if err == nil && p.paying == silence && !p.awaits {
		return m.endsProof(verdict{kind: alive})
	}
	m.askForAudit()
	return verdict{}
}

// peekFailed is trouble of the peek. What says that it cannot be had from this version,
// or was cut short, leaves it to an audit; what says nothing is tried again.
func (m *move) peekFailed(o observation) verdict {
	p := &m.proof
	switch {
	case p.stage != idle && isRefusal(sight(o.err)):
		return m.proofFails(o.err, watchVerb)
	case p.stage != peeking, p.tight:
		return verdict{} // it goes on without this peek
	case isExpired(o.err), isAboutVersion(o.err), errors.Is(o.err, errPeekCut):
		m.askForAudit()
		return verdict{}
	default:
		return m.proofFails(o.err, watchVerb)
	}
}

// proofFails ends a proof that could not be made. Trouble of a side request is its own:
// another proof is tried, and only an answer about the resource itself counts.
func (m *move) proofFails(err error, asked verb) verdict {
	if seen := sight(err); isRefusal(seen) {
		return m.endsProof(verdict{kind: refused, err: err, verb: asked})
	}
	owed := m.proof.paying
	sent := !errors.Is(err, errNoRoom) // what was not sent is no silence of the server's
	v := m.endsProof(verdict{kind: unproven, err: err, silent: sent && owed&silence != 0})
	m.proof.owed |= owed
	if sent {
		m.proof.owed &^= silence
	}
	m.proof.resting = true
	return v
}

// endsProof ends the proof under way, with its verdict.
func (m *move) endsProof(v verdict) verdict {
	p := &m.proof
	p.stage, p.paying, p.target, p.asks = idle, 0, "", 0
	p.awaits = p.awaits && p.tight // by a peek that goes on
	m.out.endProof, m.out.ask, m.out.wait = true, noQuestion, 0
	return v
}

// abandonProof ends the proof and the audit under way, because the set that they are
// about is given up. The next set pays all debts.
func (m *move) abandonProof() {
	m.proof.awaits, m.out.endPeeks = false, true
	m.endsProof(verdict{})
	m.endsAudit()
}

// isRefusal reports whether a sighting is the server's word that it does not serve
// this store.
func isRefusal(seen invalidation.Sighting) bool {
	switch seen {
	case invalidation.NotKnown, invalidation.NotAllowed, invalidation.NotServed, invalidation.NotWatchable:
		return true
	default:
		return false
	}
}
