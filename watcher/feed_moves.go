package watcher

import (
	"fmt"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
)

// proceed begins the next attempt: a watch if there is a set to resume, else a
// new set.
func (m *move) proceed() {
	f := &m.feed
	switch {
	case !f.held && !f.built:
		m.build()
	case m.marks.resumable():
		m.openWatch()
	default:
		m.judge(invalidation.VersionExpired, errUnversioned)
		m.build()
	}
}

func (m *move) openWatch() {
	f := &m.feed
	f.phase, f.late, f.quiet = opening, false, false
	m.out.request = askWatch
	m.marks.streamed = m.marks.complete
}

// build begins a new set. It will be its own proof, for all who wait for one by now.
func (m *move) build() {
	f := &m.feed
	m.abandonProof()
	m.proof.owed = 0
	f.held, f.built = false, false
	f.next, f.pageVersion, f.came = "", "", false
	m.out.begin = true
	if f.noWatchList || f.listOnce || f.denied == listVerb {
		f.phase = listing
		m.out.request = askPage
		return
	}
	f.phase = streaming
	m.out.request = askInitial
}

// page takes a page of the list, and asks for the next one or completes the set.
func (m *move) page(o observation) {
	f := &m.feed
	if f.pageVersion != "" && o.version != f.pageVersion {
		m.restartList() // pages of two versions make no set
		return
	}
	m.granted(listVerb)
	f.pageVersion, f.next = o.version, o.next
	if f.next != "" {
		m.out.request = askPage
		return
	}
	f.restarts, f.listOnce = 0, false
	if f.suspect && (o.prompt || f.unmarked >= maxUnmarked) {
		f.noWatchList, m.out.noWatchList = true, errNoMarker
	}
	f.suspect = false
	m.complete(o)
	if f.built {
		m.openWatch()
	}
}

// restartList lists again from the first page. That is bounded: after
// maxRestarts the driver asks for everything in one page.
func (m *move) restartList() {
	f := &m.feed
	f.restarts++
	if f.restarts > maxRestarts+1 {
		f.restarts = 0
		m.fail(&unusable{errRestarted}, listVerb)
		return
	}
	f.next, f.pageVersion = "", ""
	m.out.begin = true
	m.out.request = askPage
}

// complete takes note that a whole set is there. A set from before what was seen
// means that the server was rewound, since the set came by a consistent read: the
// next one is taken as it comes.
func (m *move) complete(o observation) {
	if m.marks.seen != "" && versions.Older(o.version, m.marks.seen) {
		m.rewound(fmt.Errorf("resource version %s after %s: %w", o.version, m.marks.seen, ErrOutOfOrder))
		return
	}
	m.marks.complete, m.marks.streamed = o.version, o.version
	m.marks.show(o.version)
	m.feed.built, m.feed.implausible, m.proof.small = true, o.implausible, o.small
}

// rewound forgets what the server was and lists anew.
func (m *move) rewound(cause error) {
	m.judge(invalidation.VersionRewound, cause)
	m.marks.seen = ""
	m.build()
}

// publish makes the built set the held one. It is ready with that if its watch is
// open, and it is plausible; else it is pending, and takes a proof.
func (m *move) publish(open bool) {
	f := &m.feed
	f.held, f.built, f.pending = true, false, !open || f.implausible
	f.stucks, f.barren, f.expired = 0, 0, false
	m.out.publish = granted
	m.proof.resting = false // what kept it from being made was about another set
	if f.pending {
		m.out.publish = ungranted
		m.proof.owed |= waiter
	}
	if f.implausible {
		m.proof.owed |= contents
	}
}

// follow begins to receive events.
func (m *move) follow() {
	f := &m.feed
	if f.pending && !f.implausible {
		f.pending = false
		m.out.publish = confirmed
	}
	f.phase, f.timely = watching, false
	m.out.follow = true
	m.proof.resting = false // whatever kept it from being made may be over
}

// granted takes note that the server grants what it refused.
func (m *move) granted(v verb) {
	if m.feed.denied == v {
		m.feed.denied = noVerb
	}
}

// advance takes note of what the stream has brought.
func (m *move) advance(o observation) {
	m.marks.stream(o.version)
	m.feed.barren, m.feed.expired = 0, false
	m.out.advance = o.kind == changed
}

// doubt has the next stream, and the set, proven: another server may answer from
// here on.
func (m *move) doubt() { m.proof.owed |= doubt }

// ended deals with a watch that was closed without an error. When its time was up
// that is routine. Before, it was cut. At once and with nothing in it, again and
// again, is how some servers say that the version is gone.
func (m *move) ended(o observation) {
	switch o.end {
	case timely:
		m.feed.timely, m.feed.abrupt = true, 0
		m.reopen(nil, noPause)
	case cut:
		m.feed.abrupt = 0
		m.doubt()
		m.reopen(nil, soon)
	case abrupt:
		m.doubt()
		if m.feed.abrupt++; m.feed.abrupt > 1 {
			m.reopen(errHasty, backOff)
		} else {
			m.reopen(nil, soon)
		}
	case dropped:
		m.doubt()
		if m.feed.quiet { // held back by a proxy until its end: there was nothing to bring
			m.reopen(nil, soon)
		} else {
			m.reopen(errDropped, backOff)
		}
	case empty:
		m.doubt()
		if m.isBarren() {
			m.fail(errBrief, noVerb)
		} else {
			m.reopen(errBrief, backOff)
		}
	}
}

// isBarren counts a watch that failed or ended at once, without progress, and reports
// whether that was one too many for its version.
func (m *move) isBarren() bool {
	m.feed.barren++
	if m.feed.barren < maxBarren {
		return false
	}
	m.feed.barren = 0
	return true
}

// reopen resumes a watch that ended, after a pause if there was something wrong
// with it.
func (m *move) reopen(cause error, p pause) {
	d := m.judge(invalidation.StreamEnded, cause)
	if d.Revoke != "" {
		m.doubt()
	}
	if d.Recovery == invalidation.ListAll {
		m.abandonProof()
		m.feed.held = false
	}
	if p == noPause {
		m.proceed()
		return
	}
	m.feed.phase, m.out.pause = waiting, p
}

// broken deals with a watch that was refused, or ended with an error. A server that
// answers so again and again to the same version is asked for a new list, as
// client-go's reflector asks at once.
func (m *move) broken(err error) {
	if isAboutVersion(err) && m.isBarren() {
		err = fmt.Errorf("%w: %w", errStillBroke, err)
	}
	m.fail(err, watchVerb)
}

// fail deals with a failed attempt: the policy decides what it means for the
// token, and the next attempt comes after a pause.
func (m *move) fail(err error, asked verb) {
	f := &m.feed
	seen := sight(err)
	d := m.judge(seen, err)
	if isRefusal(seen) {
		f.denied = asked
	}
	if seen == invalidation.VersionRewound {
		m.marks.seen = ""
	}
	m.retreat(d.Recovery == invalidation.ListAll)
	if seen == invalidation.VersionExpired {
		// The version is gone for good, and every store of a restarted server has to
		// list: the first time it is begun at once.
		if !f.expired && m.out.pause == backOff {
			m.out.pause = soon
		}
		f.expired = true
	}
}

// retreat ends what is under way and pauses before the next attempt: a new list,
// or a new stream, which is then to be proven. A set that is built is kept while its
// version lasts. A pause that has begun stands: proofs may come more often than it
// ends, and would put off the attempt for ever.
func (m *move) retreat(list bool) {
	f := &m.feed
	if list {
		m.abandonProof()
		f.held, f.built = false, false
	}
	m.out.discard = !f.built
	m.doubt()
	if f.phase == waiting {
		return
	}
	f.phase, f.timely = waiting, false
	m.out.pause = backOff
}

// outOfTouch ends the token because the store has been without a sign of life,
// or without a proof, for too long.
func (m *move) outOfTouch(err error) { m.goOn(m.judge(invalidation.OutOfTouch, err)) }

// goOn leaves alone what is under way, since it is what will bring the next proof, unless
// the policy wants a new list.
func (m *move) goOn(d invalidation.Decision) {
	m.doubt()
	if d.Recovery != invalidation.ListAll {
		return
	}
	switch m.feed.phase {
	case listing, streaming: // that is what it wants
	case waiting:
		m.feed.held, m.feed.built = false, false
	default:
		m.retreat(true)
	}
}

// silenced deals with a silence that a proof could not explain. An open watch is
// stuck, since nothing is left to vouch for it.
func (m *move) silenced(err error) {
	if m.feed.phase == watching {
		m.stuck(err)
		return
	}
	m.outOfTouch(err)
}

// lagging deals with a set that lacks what the server has. A watch that is open, or late
// to be, is stuck. Otherwise nothing is wrong but that: the next one will bring it, and
// until then no proof is tried for what it cannot show.
func (m *move) lagging(cause error) {
	if m.feed.phase == watching || m.feed.phase == opening && m.feed.late {
		m.stuck(cause)
		return
	}
	m.proof.resting = true
	m.goOn(m.judge(invalidation.StreamStuck, cause))
}

// stuck gives up the stream.
func (m *move) stuck(cause error) {
	d := m.judge(invalidation.StreamStuck, cause)
	m.feed.stucks++
	given := m.feed.stucks >= maxStucks
	m.feed.listOnce = m.feed.listOnce || given // by a request that is no stream
	m.out.reconnect = true
	m.retreat(d.Recovery == invalidation.ListAll || given)
}

// withoutWatchList turns to LIST, for good.
func (m *move) withoutWatchList(why error) {
	m.feed.noWatchList, m.out.noWatchList = true, why
	m.build()
}
