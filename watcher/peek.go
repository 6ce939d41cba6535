package watcher

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// maxPeeks bounds how many peeks are open at once. Each lasts three seconds, and
// a tight proof opens one several times a second.
const maxPeeks = 8

// peek is a second watch, from the set's version.
type peek struct {
	cancel   context.CancelFunc
	askedAt  time.Time
	openedAt time.Time // set by its goroutine before the first glimpse
}

// glimpse is what a peek brings: an event, its end, or its failure.
type glimpse struct {
	from  *peek
	event watch.Event
	open  bool
	err   error
}

// openPeek opens a peek, unless there are many: those that should have ended by
// themselves are closed first, since something in between holds them back, or the server
// does not keep to its time.
func (w *Watcher) openPeek(ctx context.Context) {
	for _, p := range slices.Clone(w.peeks) {
		if time.Since(p.askedAt) > peekLength+time.Second {
			w.closePeek(p)
		}
	}
	if len(w.peeks) >= maxPeeks || !w.state.marks.resumable() || w.state.proof.fake {
		return
	}
	ctx, cancel := context.WithCancel(w.briefly(ctx))
	p := &peek{cancel: cancel, askedAt: time.Now()}
	w.peeks = append(w.peeks, p)
	call := w.watch(w.watchOptions(false), peekLength)
	w.calls.Go(func() { w.follow(ctx, p, call) })
}

// follow hands on what comes from a peek, until it ends.
func (w *Watcher) follow(ctx context.Context, p *peek, call func(context.Context) answer) {
	show := func(g glimpse) bool {
		g.from = p
		select {
		case w.peeked <- g:
			return true
		case <-ctx.Done():
			return false
		}
	}
	a := call(ctx)
	if a.err == nil && isNil(a.stream) {
		a.err = &unusable{errNothing}
	}
	if a.err != nil {
		show(glimpse{err: a.err})
		return
	}
	defer a.stream.Stop()
	p.openedAt = time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-a.stream.ResultChan():
			if !show(glimpse{event: e, open: open}) || !open {
				return
			}
		}
	}
}

func (w *Watcher) closePeeks() {
	for _, p := range w.peeks {
		p.cancel()
	}
	w.peeks = nil
	clear(w.awaited)
}

func (w *Watcher) closePeek(p *peek) {
	p.cancel()
	w.peeks = slices.DeleteFunc(w.peeks, func(other *peek) bool { return other == p })
}

// glimpsed takes what came from a peek. The main stream is to bring the objects: here
// they are only compared with the set. It reports false for what comes from a peek that
// was closed.
func (w *Watcher) glimpsed(g glimpse) (o observation, ok bool) {
	if !slices.Contains(w.peeks, g.from) {
		return o, false
	}
	if g.err != nil || !g.open || g.event.Type == watch.Error || g.event.Type == watch.Bookmark {
		w.closePeek(g.from) // it has said all
	}
	broken := func(err error) (observation, bool) {
		return observation{kind: peekFailed, verb: watchVerb, err: err}, true
	}
	switch {
	case g.err != nil:
		return broken(named(watchVerb, false, g.err))
	case !g.open && time.Since(g.from.openedAt) >= peekLength-time.Second:
		return observation{kind: proofEnded}, true
	case !g.open:
		return broken(errPeekCut)
	case g.event.Type == watch.Error:
		return broken(serverError(g.event.Object))
	case isNil(g.event.Object):
		return broken(&unusable{errNothing})
	}
	m, err := meta.Accessor(g.event.Object)
	switch {
	case err != nil:
		return broken(&unusable{err})
	case g.event.Type == watch.Bookmark:
		version := m.GetResourceVersion()
		return observation{kind: proofReached, version: version, content: w.checked(version)}, true
	case w.awaitEvent(g.event.Type, g.event.Object):
		return observation{kind: proofMissed}, true
	case w.allCaught():
		return observation{kind: proofCaught}, true
	default:
		return o, false
	}
}

// awaited is an event that the set is to reflect before it is proven.
type awaited struct {
	event watch.EventType
	obj   runtime.Object
}

// await notes that the set is to reflect an object.
func (w *Watcher) await(obj runtime.Object) { w.awaitEvent(watch.Added, obj) }

// awaitEvent notes that the set is to reflect an event, and reports whether it does not
// yet. Of one object only the newest event counts.
func (w *Watcher) awaitEvent(event watch.EventType, obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	if w.sink.Reflects(event, obj) {
		delete(w.awaited, key)
		return false
	}
	w.awaited[key] = awaited{event, obj}
	return true
}

// allCaught reports whether the set has come to reflect all that a proof awaited.
func (w *Watcher) allCaught() bool {
	if !w.state.proof.awaits {
		return false
	}
	for key, a := range w.awaited {
		if !w.sink.Reflects(a.event, a.obj) {
			return false
		}
		delete(w.awaited, key)
	}
	return true
}
