package watcher

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// observe lets the machine see something, carries out what it wants, as the driver and the
// sink do, and says which promise is broken by that, if one is.
func (w *world) observe(o observation) (broken string) {
	var e effects
	before := w.m
	w.m, e = w.m.step(o, invalidation.Default)
	w.tell(e)
	switch e.publish {
	case granted, ungranted:
		w.set, w.auditAt = w.listed.list, w.complete()
		w.ready, w.provable = e.publish == granted, e.publish == ungranted
		w.asOf = void
		if w.ready {
			w.asOf = w.begunAs
		}
	case confirmed:
		w.prove(w.begunAs)
	}
	if e.proven {
		by := w.goesBy
		if e.audited {
			by, w.auditAt = w.auditAs, w.complete()
		}
		if by != void && !w.server.reflects(w.set, by) {
			return fmt.Sprintf("proven as of commit %d, which the set does not reflect", by)
		}
		w.prove(by)
	}
	if e.begin {
		w.begunAs, w.listed = w.server.last, reply{}
	}
	w.carry(e)
	older := before.marks.complete != "" && w.m.marks.complete < before.marks.complete
	switch {
	case before.feed.phase == waiting && e.pause != noPause:
		return "a pause begins again"
	case w.ready && !w.m.feed.held:
		return "ready without a set"
	case w.ready && w.asOf != void && !w.server.reflects(w.set, w.asOf):
		return fmt.Sprintf("ready as of commit %d, which the set does not reflect", w.asOf)
	case w.ready && older && e.publish == notPublished:
		return "the version of a ready set went back"
	case o.kind == failed && apierrors.IsForbidden(o.err) && (w.ready || w.set != (collection{})):
		return "served after the right was withdrawn"
	}
	return ""
}

// prove takes note of a proof.
func (w *world) prove(by int8) {
	w.asOf = max(w.asOf, by)
	w.ready, w.provable = w.ready || w.provable, false
}

// tell ends the token.
func (w *world) tell(e effects) {
	if e.revoke.Revoke == "" && !e.revoke.Drop {
		return
	}
	w.provable = (w.ready || w.provable) && e.revoke.Recovery != invalidation.ListAll
	w.ready = false
	if e.revoke.Drop {
		w.set = collection{}
	}
}

// carry does what is asked of the server.
func (w *world) carry(e effects) {
	if e.answered {
		w.goesBy = w.askedAs
	}
	if e.endProof {
		w.question, w.replied, w.sample, w.stage = false, reply{}, reply{}, false
	}
	if e.endProof || e.endPeeks {
		w.peek, w.awaited = channel{}, [keys]awaitedEvent{}
	}
	if e.endAudit {
		w.auditing, w.audited, w.compares, w.compare = false, reply{}, false, false
	}
	if w.m.proof.stage == idle && w.m.audit.stage == noAudit {
		w.notes, w.deleted = false, [keys]int8{}
	}
	w.due = w.due || e.rest != nil
	w.stage = w.stage || e.wait != 0
	w.compare = w.compare || e.auditWait != 0
	switch e.ask {
	case askLatest:
		w.question, w.replied, w.askedAs, w.notes = true, reply{}, w.server.last, true
	case askPeek:
		w.peek = channel{true, w.complete()}
	}
	switch e.askAudit {
	case askFirstPage:
		w.auditing, w.audited, w.auditAs, w.notes = true, reply{}, w.server.last, true
	case askCompare:
		w.compares = true
	}
	switch {
	case e.pause != noPause:
		w.main, w.asks = channel{}, noRequest
	case e.request != noRequest:
		w.main, w.asks = channel{}, e.request
	case e.follow:
		w.main, w.asks = channel{true, w.complete()}, noRequest
	}
}

// apply is the sink's part of an event, and says what becomes of it.
func (w *world) apply(key int, sent object, removed bool) (known bool, err error) {
	held, streamed := w.set[key], w.main.at
	exists := held != (object{})
	switch {
	case exists && sent.version < held.version, exists && !removed && held == sent, removed && !exists:
		return true, nil
	case sent.version < streamed:
		return false, ErrOutOfOrder
	case sent.version >= w.complete():
	case !exists && sent.version <= w.auditAt:
		return true, nil
	default:
		return false, ErrContradicts
	}
	if removed {
		w.set[key] = object{}
		if w.notes {
			w.deleted[key] = held.uid
		}
	} else {
		w.set[key] = sent
	}
	return false, nil
}

// checked compares the last answer with the set where both are at a version.
func (w *world) checked(version int8) Agreement {
	if !w.sample.made || w.sample.version != version {
		return Agrees
	}
	_, a := w.compareSample(version)
	return a
}

// compareSample compares what a list of one object shows with the set.
func (w *world) compareSample(complete int8) (key int, a Agreement) {
	if w.sample.version == complete && count(w.sample.list) != count(w.set) {
		return 0, Contradicts
	}
	for k, obj := range w.sample.list {
		if obj != (object{}) {
			return k, w.check(k, obj, w.sample.version, complete)
		}
	}
	return 0, Agrees
}

func count(c collection) (n int) {
	for _, obj := range c {
		if obj != (object{}) {
			n++
		}
	}
	return n
}

// event returns what a watch brings next.
func (w *world) event(from int8) (key int, sent object, removed, ok bool) {
	key, version, ok := w.server.next(from)
	if !ok || from > w.server.now() {
		return 0, sent, false, false
	}
	i := w.server.index(version)
	sent = w.server.at[i][key]
	if removed = sent == (object{}); removed {
		sent = object{w.server.at[i-1][key].uid, version}
	}
	return key, sent, removed, true
}
