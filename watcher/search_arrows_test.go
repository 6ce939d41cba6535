package watcher

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// arrow is one thing that can happen. It reports whether it can happen now, and which
// promise it breaks.
type arrow struct {
	name string
	// helps says that it is what a healthy server, and time, bring about.
	helps bool
	do    func(*world) (ok bool, broken string)
}

var (
	errBusy      = apierrors.NewServiceUnavailable("no time")
	errFault     = apierrors.NewInternalError(errSome)
	errGone      = apierrors.NewResourceExpired("gone")
	errForbidden = apierrors.NewForbidden(configMaps, "", errSome)
)

// arrows are all that can happen, in the order in which a healthy world does it.
func arrows() []arrow {
	var all []arrow
	on := func(name string, helps bool, can func(*world) bool, then func(*world) string) {
		all = append(all, arrow{name, helps, func(w *world) (bool, string) {
			if !can(w) {
				return false, ""
			}
			return true, then(w)
		}})
	}
	sees := func(o observation) func(*world) string {
		return func(w *world) string { return w.observe(o) }
	}
	healthy := func(can func(*world) bool) func(*world) bool {
		return func(w *world) bool { return !w.refuses && can(w) }
	}

	// Answers, made and on their way.
	on("the right comes back", true, func(w *world) bool { return w.refuses }, func(w *world) string { w.refuses = false; return "" })
	on("compared", true, func(w *world) bool { return w.compares }, (*world).compareAll)
	on("the set is listed", true, healthy(func(w *world) bool { return w.asksForSet() && !w.listed.made }), func(w *world) string {
		w.listed = w.now()
		return ""
	})
	on("the set arrives", true, func(w *world) bool { return w.asksForSet() && w.listed.made }, (*world).setArrives)
	on("the watch is open", true, healthy(func(w *world) bool { return w.asks == askWatch }), func(w *world) string {
		w.asks = noRequest
		return w.observe(observation{kind: streamOpened})
	})
	on("an event", true, func(w *world) bool { return w.m.feed.phase == watching && w.main.open }, (*world).mainEvent)
	on("the question is answered", true, healthy(func(w *world) bool { return w.question && !w.replied.made }), func(w *world) string {
		w.replied = w.now()
		return ""
	})
	on("the answer arrives", true, func(w *world) bool { return w.replied.made }, (*world).answerArrives)
	on("the peek brings an event", true, func(w *world) bool { return w.peek.open }, (*world).peekEvent)
	on("the peek brings a bookmark", true, func(w *world) bool { return w.peek.open }, (*world).peekBookmark)
	on("the audit is listed", true, healthy(func(w *world) bool { return w.auditing && !w.audited.made }), func(w *world) string {
		w.audited = w.now()
		return ""
	})
	on("the audit arrives", true, func(w *world) bool { return w.audited.made && w.auditing }, func(w *world) string {
		w.auditing = false
		return w.observe(observation{kind: auditListed, version: versionOf(w.audited.version)})
	})

	// Time.
	on("the proof's stage is over", true, func(w *world) bool { return w.stage }, func(w *world) string {
		w.stage = false
		return w.observe(observation{kind: proofLate, err: errSome})
	})
	on("the audit's stage is over", true, func(w *world) bool { return w.compare }, func(w *world) string {
		w.compare = false
		return w.observe(observation{kind: auditLate, err: errSome})
	})
	on("the pause is over", true, func(w *world) bool { return w.m.feed.phase == waiting }, sees(observation{kind: waited}))
	on("a proof is due", true, func(w *world) bool { return w.due }, func(w *world) string {
		w.due = false
		return w.observe(observation{kind: proofDue, by: schedule})
	})
	on("a bookmark", true, func(w *world) bool { return w.m.feed.phase == watching && w.main.open }, (*world).mainBookmark)
	on("silence", true, func(w *world) bool { return true }, sees(observation{kind: silent, err: errSome}))
	on("too old", false, func(w *world) bool { return true }, sees(observation{kind: stale, err: errSome}))
	on("the phase takes long", false, func(w *world) bool { return w.asks != noRequest || w.main.open }, sees(observation{kind: timedOut, err: errSome}))

	// The program.
	on("somebody waits", false, func(w *world) bool { return w.m.proof.owed&waiter == 0 }, sees(observation{kind: proofWanted, by: waiter}))
	on("an audit is due", false, func(w *world) bool { return !w.m.audit.again }, sees(observation{kind: auditWanted}))

	// The server, and the network.
	for key := range keys {
		for _, remove := range []bool{false, true} {
			on("commit", false, func(w *world) bool { return w.mayCommit() && w.server.commit(key, remove) }, func(*world) string { return "" })
		}
	}
	on("a restore", false, func(w *world) bool { return w.server.restore() }, (*world).restored)
	on("the right is withdrawn", false, func(w *world) bool { return !w.refuses }, func(w *world) string { w.refuses = true; return "" })
	for how, name := range map[ending]string{cut: "cut", timely: "ended in time", empty: "ended, empty", abrupt: "ended at once"} {
		on("the watch is "+name, false, func(w *world) bool { return w.main.open }, sees(observation{kind: streamEnded, end: how}))
	}
	for _, err := range []error{errBusy, errFault, errGone} {
		failure := observation{kind: failed, verb: watchVerb, err: err}
		on("the request fails: "+err.Error(), false, func(w *world) bool { return w.asks != noRequest || w.main.open }, sees(failure))
	}
	on("the request is refused", false, func(w *world) bool { return w.refuses && w.asks != noRequest }, sees(observation{kind: failed, verb: watchVerb, err: errForbidden}))
	on("the question fails", false, func(w *world) bool { return w.question }, sees(observation{kind: proofFailed, verb: listVerb, err: errBusy}))
	on("the question is refused", false, func(w *world) bool { return w.question && w.refuses }, sees(observation{kind: proofFailed, verb: listVerb, err: errForbidden}))
	for _, err := range []error{errPeekCut, errGone} {
		on("the peek fails: "+err.Error(), false, func(w *world) bool { return w.peek.open }, func(w *world) string {
			w.peek = channel{}
			return w.observe(observation{kind: peekFailed, verb: watchVerb, err: err})
		})
	}
	on("the peek ends", false, func(w *world) bool { return w.peek.open }, func(w *world) string {
		w.peek = channel{}
		return w.observe(observation{kind: proofEnded})
	})
	on("the audit fails", false, func(w *world) bool { return w.auditing }, sees(observation{kind: auditFailed, verb: listVerb, err: errBusy}))
	on("a WatchList of its marker alone", false, healthy(func(w *world) bool { return w.asks == askInitial && count(w.server.current()) > 0 }), func(w *world) string {
		w.listed = reply{true, w.server.now(), collection{}}
		w.asks = noRequest
		return w.observe(observation{kind: initialEnd, version: versionOf(w.listed.version), implausible: true})
	})
	return all
}

func (w *world) asksForSet() bool { return w.asks == askInitial || w.asks == askPage }

func (w *world) now() reply { return reply{true, w.server.now(), w.server.current()} }

func (w *world) setArrives() string {
	o := observation{kind: initialEnd, version: versionOf(w.listed.version), small: true}
	if w.asks == askPage {
		o.kind, o.prompt = pageListed, true
	}
	o.implausible = o.kind == initialEnd && count(w.listed.list) == 0
	w.asks = noRequest
	return w.observe(o)
}

func (w *world) mainEvent() string {
	key, sent, removed, ok := w.event(w.main.at)
	if !ok {
		return ""
	}
	_, err := w.apply(key, sent, removed)
	if err != nil {
		return w.observe(observation{kind: failed, verb: watchVerb, err: err})
	}
	w.main.at = sent.version
	caught := w.m.proof.awaits && w.allReflected()
	broken := w.observe(observation{kind: changed, version: versionOf(sent.version), content: w.checked(sent.version)})
	if caught && broken == "" {
		broken = w.observe(observation{kind: proofCaught})
	}
	return broken
}

func (w *world) mainBookmark() string {
	now := w.server.now()
	if _, _, _, more := w.event(w.main.at); more || w.main.at > now {
		return ""
	}
	w.main.at = now
	return w.observe(observation{kind: bookmarked, version: versionOf(now), content: w.checked(max(now, w.complete()))})
}

func (w *world) answerArrives() string {
	w.question, w.sample, w.replied = false, w.replied, reply{}
	key, a := w.compareSample(w.complete())
	if a == Awaits {
		w.awaited[key] = awaitedEvent{true, false, w.sample.list[key]}
	}
	return w.observe(observation{kind: proofListed, version: versionOf(w.sample.version), content: a})
}

func (w *world) peekEvent() string {
	key, sent, removed, ok := w.event(w.peek.at)
	if !ok {
		return ""
	}
	w.peek.at = sent.version
	a := awaitedEvent{true, removed, sent}
	if !w.reflectsEvent(key, a) {
		w.awaited[key] = a
		return w.observe(observation{kind: proofMissed})
	}
	w.awaited[key] = awaitedEvent{}
	if w.m.proof.awaits && w.allReflected() {
		return w.observe(observation{kind: proofCaught})
	}
	return ""
}

func (w *world) peekBookmark() string {
	now := w.server.now()
	if _, _, _, more := w.event(w.peek.at); more || w.peek.at > now {
		return ""
	}
	w.peek = channel{}
	return w.observe(observation{kind: proofReached, version: versionOf(now), content: w.checked(now)})
}

func (w *world) compareAll() string {
	w.compares = false
	worst := Agrees
	for k := range keys {
		worst = max(worst, w.check(k, w.audited.list[k], w.audited.version, w.complete()))
	}
	return w.observe(observation{kind: auditCompared, content: worst, err: errSome})
}

// mayCommit keeps a restored server from overtaking what it has shown before it is asked
// again: no version tells that.
func (w *world) mayCommit() bool {
	if !w.server.restored {
		return true
	}
	now := w.server.now()
	shown := max(w.listed.version, w.replied.version, w.audited.version, w.sample.version)
	return w.m.marks.seen <= versionOf(now) && shown <= now
}

// restored voids what was claimed, or was asked, of the history that is lost.
func (w *world) restored() string {
	w.asOf, w.begunAs, w.askedAs, w.goesBy, w.auditAs = void, void, void, void, void
	return ""
}
