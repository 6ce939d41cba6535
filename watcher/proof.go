package watcher

import (
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
)

// A proof shows that the set holds everything the server had committed at the
// moment the proof was asked for. It is made beside the main stream, by two small
// requests:
//
//  1. A consistent LIST of one object tells the server's version now. If the set
//     has reached it, that is the proof. If the server's version is lower than
//     the set's was, the server was rewound.
//  2. Otherwise the main stream gets a moment to come there by itself. If it does
//     not, a second watch, the peek, is opened from the set's own version. It
//     brings at once what the main stream has missed, if anything; if nothing, the
//     server says so with a bookmark, two seconds before the short watch ends.
//
// An event that the peek brings and the main stream does not, within another
// moment, shows that the main stream is stuck.
//
// Where no bookmark comes, because the server has none, there is a third request:
// the audit, a consistent list of everything that is compared with the set, key by
// key. It is the one proof that does not trust the server's own watch cache, and
// programs may ask for it at an interval (C52). A difference that the main stream
// does not bring within a moment shows that the set has diverged.
//
// A bookmark takes its time, up to two seconds; and kube-apiserver sends none to a
// watch of one namespace, or with a selector, while the last thing that happened
// is of no concern to it. For bounds that are hardly longer, the machine is tight:
// if the set is small, an audit of one page is quicker than any peek. If it is
// not, the machine asks for the version again and again while it waits, and opens
// a peek each time, so that when the next bookmark comes it proves a moment just
// passed.
//
// This is the second half of the state machine: pure, like step.

// stage is how far a proof has come.
type stage int

const (
	idle      stage = iota // no proof is under way
	asking                 // waiting for the server's version
	settling               // waiting for the main stream to reach it
	peeking                // waiting for what the peek brings
	missing                // it brought an event, and the main stream is waited for
	auditing               // everything is listed, page by page
	comparing              // the main stream is waited for to bring what differs
)

// String returns what a person reads in a status.
func (s stage) String() string {
	return [...]string{"", "asking for the server's version", "waiting for the watch to reach it",
		"looking for what the watch missed", "waiting for the watch to bring what it missed",
		"listing to compare", "waiting for the watch to bring what differs"}[s]
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
	auditTime  = 30 * time.Second // of a page
)

// maxAsks is how often a tight machine asks for the version within one proof
// before it gives up waiting for a bookmark.
const maxAsks = 7

// maxStuck is how many times in a row a stream may be found stuck before the set
// is listed anew instead.
const maxStuck = 3

// proof is the state of the proof under way. The zero value is none.
type proof struct {
	stage   stage
	from    string // the set's version when the proof was asked for
	target  string // the newest version that the server told; empty if none yet
	missed  string // the newest version that a peek brought and the set has not reached
	silent  bool   // the main stream has been silent: the proof is to tell whether it is stuck
	again   bool   // another proof was asked for since this one began
	audit   bool   // an audit was asked for since this one began
	standIn bool   // this is an audit in place of a peek
	asks    int    // how often a tight machine has asked for the version again
}

// probe is what a proof asks of the server.
type probe int

const (
	noProbe      probe = iota
	askLatest          // the server's version
	askPeek            // a peek
	askAudit           // the first page of the audit
	askAuditPage       // the next page
	compare            // what was listed with the set
	endProbe           // nothing more, for this proof
	dropProbe          // nothing more, and what peeks bring means nothing
)

// prove is one step of a proof.
func (m *move) prove(o observation) {
	p := &m.proof
	switch o.kind {
	case proofWanted:
		if p.stage == idle {
			m.startProof(false)
		} else {
			p.again = true
		}
	case silent:
		if p.stage == idle {
			m.startProof(true)
		} else {
			p.silent = true
		}

	case proofListed:
		switch {
		case !versions.Resumable(o.version) || !versions.Resumable(m.version):
			m.endProof()
			m.effects.excused, m.effects.heard = true, true
		case versions.Older(o.version, p.from):
			m.rewound(fmt.Errorf("the server is at resource version %s, and was at %s: %w", o.version, p.from, ErrOutOfOrder))
		default:
			p.target, m.effects.answered = o.version, true
			switch {
			case p.missed != "" && !versions.Reached(m.version, p.missed):
				p.stage, m.stageTime = missing, missTime
			case p.stage == asking:
				p.stage, m.stageTime = settling, settleTime
			}
			m.progressed()
		}
	case proofMissed:
		switch {
		case p.isAudit(): // it will find that by itself
		case !versions.Reached(m.version, o.version):
			p.missed = o.version
			// From a peek of an earlier proof it is no hurry: the main stream is
			// about to bring it, or the next proof waits for it.
			if p.stage != missing && p.stage != idle {
				p.stage, m.stageTime = missing, missTime
			}
		case p.stage == missing:
			// The main stream brought it before the peek did, and more.
			m.caughtUp()
		}
	case proofReached:
		m.noBookmarks = m.noBookmarks && o.version == ""
		if !p.isAudit() && p.target != "" && p.missed == "" && versions.Reached(o.version, p.target) {
			m.reach(o.version)
			m.proven()
		}
	case proofEnded:
		if p.stage == peeking && !m.tight {
			m.inconclusive(nil)
		}

	case auditWanted:
		if p.stage == idle {
			m.startAudit(m.version)
		} else {
			p.audit = true
		}
	case auditListed:
		switch {
		case versions.Older(o.version, p.from):
			m.rewound(fmt.Errorf("the server is at resource version %s, and was at %s: %w", o.version, p.from, ErrOutOfOrder))
		case p.target != "" && p.target != o.version:
			m.unproven(errRestarted)
		case o.next != "":
			p.target, m.stageTime, m.probe = o.version, auditTime, askAuditPage
		default:
			p.target, m.probe = o.version, compare
		}
	case auditCompared:
		switch {
		case o.err == nil:
			m.proven()
		case p.stage == auditing:
			p.stage, m.stageTime = comparing, missTime
		case p.standIn:
			m.stuck(o.err)
		default:
			d := m.judge(invalidation.SetDiverged, o.err)
			m.retreat(d.Recovery == invalidation.ListAll, o.err)
		}

	case proofLate:
		switch {
		case p.stage == settling:
			p.stage, m.stageTime, m.probe = peeking, peekTime, askPeek
			if m.tight {
				m.stageTime = tightTime
			}
			if (m.noBookmarks || m.tight && m.small) && m.proofNeeded() {
				m.standIn() // it would be inconclusive, as the last one was, or late
			}
		case p.stage == peeking && m.tight && p.asks < maxAsks:
			p.asks++
			p.stage, p.from, m.stageTime, m.probe = asking, m.version, askTime, askLatest
		case p.stage == peeking:
			m.inconclusive(errPeekCut)
		case p.stage == missing:
			m.stuck(fmt.Errorf("%w: resource version %s", errMissed, p.missed))
		case p.stage == comparing:
			m.probe = compare
		default:
			m.unproven(o.err)
		}
	case proofFailed:
		m.unproven(o.err)
	}
}

func (m *move) startProof(silent bool) {
	m.proof = proof{stage: asking, from: m.version, silent: silent, missed: m.proof.missed}
	m.stageTime, m.probe = askTime, askLatest
}

// progressed is called when the set or the server's version has moved: that may
// be all a proof was waiting for.
func (m *move) progressed() {
	p := &m.proof
	if p.missed != "" && p.stage != missing && versions.Reached(m.version, p.missed) {
		p.missed = ""
	}
	switch {
	case p.stage == missing:
		if versions.Reached(m.version, p.missed) {
			m.caughtUp()
		}
	case p.isAudit():
		// That the version is reached is what the server's watch cache says. The
		// audit is there because it may be wrong.
	case p.stage != idle && p.target != "" && versions.Reached(m.version, p.target):
		m.proven()
	}
}

func (p proof) isAudit() bool { return p.stage == auditing || p.stage == comparing }

// caughtUp goes on with a proof when the main stream has brought what a peek
// brought before.
func (m *move) caughtUp() {
	m.proof.stage, m.proof.missed, m.stageTime = settling, "", settleTime
	m.progressed()
}

// proven ends a proof that succeeded.
func (m *move) proven() {
	m.effects.proven = true
	m.doubt = false
	m.stucks = 0
	again, audit := m.proof.again, m.proof.audit
	m.endProof()
	switch {
	case audit:
		m.startAudit(m.version)
	case again:
		m.startProof(false)
	}
}

func (m *move) startAudit(from string) {
	m.proof = proof{stage: auditing, from: from}
	m.stageTime, m.probe = auditTime, askAudit
}

// proofNeeded reports whether it takes a proof, and not just a sign of life, to
// satisfy who asked.
func (m *move) proofNeeded() bool { return m.bounded || m.doubt || m.proof.again }

// inconclusive is a peek that brought neither an event nor a bookmark. It was
// closed in time if err is nil: a sign of life, which is enough if silence was all
// there was to explain. A lagging server would have done the same, so it is no
// proof; where one is needed, an audit has to be it.
func (m *move) inconclusive(err error) {
	m.noBookmarks = true
	if err == nil && !m.proofNeeded() {
		m.endProof()
		m.effects.heard = true
		return
	}
	m.standIn()
}

// standIn goes on with an audit in place of a peek.
func (m *move) standIn() {
	p := m.proof
	m.endProof()
	m.startAudit(p.from)
	m.proof.silent, m.proof.again, m.proof.standIn = p.silent, p.again, true
}

// unproven ends a proof that could not be made. If the main stream has been
// silent there is nothing left to vouch for it. If not, trouble of a side request
// is its own (C1): another proof is tried, and only an answer about the resource
// itself counts.
func (m *move) unproven(err error) {
	wasSilent := m.proof.silent
	m.endProof()
	switch seen := sight(err); {
	case seen != invalidation.StreamBroken && seen != invalidation.NotUsable:
		m.fail(err)
	case wasSilent:
		m.stuck(err)
	default:
		m.effects.unproven = true
	}
}

// stuck gives up the main stream.
func (m *move) stuck(cause error) {
	d := m.judge(invalidation.StreamStuck, cause)
	m.stucks++
	m.effects.reconnect = true
	m.listOnce = m.listOnce || m.stucks >= maxStuck // by a request that is no stream
	m.retreat(d.Recovery == invalidation.ListAll || m.stucks >= maxStuck, cause)
}

func (m *move) endProof() {
	missed := m.proof.missed
	m.proof = proof{}
	if m.tight {
		m.proof.missed = missed // by a peek that goes on
	}
	m.probe, m.stageTime = endProbe, 0
}

// abandonProof ends a proof because there is no stream, or no set, to prove.
func (m *move) abandonProof() {
	m.doubt = m.doubt || m.proof.stage != idle // it is begun anew with the next stream
	m.proof = proof{}
	m.probe, m.stageTime = dropProbe, 0
}

// reach moves the set's version forward without an event.
func (m *move) reach(version string) {
	if versions.Older(m.version, version) {
		m.version = version
		m.floor = versions.Newest(version, m.floor)
		m.effects.moved = true
	}
}
