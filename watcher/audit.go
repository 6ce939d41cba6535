package watcher

import (
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/internal/versions"
)

// auditStage is how far an audit has come. The arrows are in auditStep.
type auditStage int

const (
	noAudit   auditStage = iota // none is under way
	paging                      // everything is listed, page by page
	comparing                   // the stream is waited for to bring what differs
)

// auditTime is how long a page of an audit may take. Under a bound that is hardly longer
// than a proof takes, one that a proof waits for gets no longer than the proof's question.
const auditTime = 30 * time.Second

// audit is a part of the proof: a consistent list of everything, compared with the set.
// It goes on beside other proofs, since it may take long. The zero value is none.
type audit struct {
	stage    auditStage
	floor    string // the highest version seen before it: a lower list is a rewind
	version  string // of its pages
	restarts int    // begun again because its pages did not belong together
	pays     bool   // the proof under way waits for it
	again    bool   // another one is wanted, that begins later
	final    bool   // the stream had its time to bring what differs
}

// auditQuestion is what an audit asks of the server, or of the set.
type auditQuestion int

const (
	noAuditQuestion auditQuestion = iota
	askFirstPage
	askNextPage
	askCompare // no request: what was listed with the set
)

// beginAudit begins an audit, or notes that another one is wanted. One that pays must
// begin after the proof that it pays for.
func (m *move) beginAudit(pays bool) {
	a := &m.audit
	if a.stage != noAudit {
		a.again = true
		return
	}
	*a = audit{stage: paging, floor: m.marks.seen, pays: pays}
	m.askAuditPage(askFirstPage)
}

// askAuditPage asks for a page, and says how long it may take.
func (m *move) askAuditPage(q auditQuestion) {
	m.out.askAudit, m.out.auditWait = q, auditTime
	if m.audit.pays && m.proof.tight {
		m.out.auditWait = askTime
	}
}

// auditStep is one step of an audit.
func (m *move) auditStep(o observation) verdict {
	a := &m.audit
	if o.kind == auditWanted && m.feed.held {
		m.beginAudit(false)
		return verdict{}
	}
	if a.stage == noAudit {
		return verdict{} // what was asked has been given up
	}
	switch o.kind {
	case auditListed:
		switch {
		case versions.Older(o.version, a.floor):
			m.endsAudit()
			return m.endsProof(verdict{kind: rewound, err: fmt.Errorf("the server is at resource version %s, and was at %s: %w",
				o.version, a.floor, ErrOutOfOrder)})
		case a.version != "" && a.version != o.version:
			return m.restartAudit(errRestarted)
		}
		a.version = o.version
		m.marks.show(o.version)
		if o.next != "" {
			m.askAuditPage(askNextPage)
		} else {
			m.out.askAudit = askCompare
		}
	case auditCompared:
		return m.compared(o)
	case auditLate:
		if a.stage == comparing {
			a.final = true
			m.out.askAudit = askCompare
			return verdict{}
		}
		m.out.reconnect = true
		return m.auditFails(o.err)
	case auditFailed:
		if isExpired(o.err) && a.version != "" {
			return m.restartAudit(o.err)
		}
		return m.auditFails(o.err)
	}
	return verdict{}
}

// restartAudit begins an audit again whose continue token did not last. It is its own
// trouble, and bounded.
func (m *move) restartAudit(err error) verdict {
	a := &m.audit
	if a.restarts++; a.restarts > maxRestarts {
		return m.auditFails(err)
	}
	a.version, a.floor = "", m.marks.seen
	m.askAuditPage(askFirstPage)
	return verdict{}
}

// compareAgain compares again when an event has come that may be what was missing. That
// is cheap for small sets; others wait for their time.
func (m *move) compareAgain() {
	if m.audit.stage == comparing && m.proof.small && m.out.advance {
		m.out.askAudit = askCompare
	}
}

// compared takes what the comparison came to. What differs may be on its way.
func (m *move) compared(o observation) verdict {
	a := &m.audit
	if o.content == Agrees {
		m.out.moved = m.marks.reach(a.version)
		m.out.proven, m.out.audited = true, true
		return m.auditPays(verdict{kind: proven})
	}
	if !a.final {
		if a.stage == paging {
			a.stage, m.out.auditWait = comparing, missTime
		}
		return verdict{}
	}
	switch {
	case o.content == Undecided:
		return m.auditFails(o.err)
	case o.content == Awaits && a.pays:
		return m.auditEndsProof(verdict{kind: behind, err: o.err})
	default:
		return m.auditEndsProof(verdict{kind: diverged, err: o.err})
	}
}

// auditPays ends an audit that has shown the set to be right, and with it the proof
// that waits for it. Others go on: it may have been begun before they were.
func (m *move) auditPays(v verdict) verdict {
	pays, again := m.audit.pays, m.audit.again
	m.endsAudit()
	if pays {
		m.endsProof(v)
	}
	m.auditAgain(again)
	if pays {
		return v
	}
	return m.arrived(Agrees)
}

// auditFails ends an audit that could not be made, and the proof that waits for it.
func (m *move) auditFails(err error) verdict {
	pays, again := m.audit.pays, m.audit.again
	m.endsAudit()
	if pays || isRefusal(sight(err)) {
		return m.proofFails(err, listVerb)
	}
	m.auditAgain(again)
	return verdict{}
}

// auditAgain begins the audit that was wanted while another one was under way.
func (m *move) auditAgain(wanted bool) {
	if wanted {
		m.beginAudit(m.proof.stage == auditing)
	}
}

// auditEndsProof ends audit and proof with what the audit has found.
func (m *move) auditEndsProof(v verdict) verdict {
	m.endsAudit()
	return m.endsProof(v)
}

func (m *move) endsAudit() {
	m.audit = audit{}
	m.out.endAudit = true
}
