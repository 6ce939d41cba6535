package watcher

import (
	"fmt"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
)

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
