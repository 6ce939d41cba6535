package watcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// maxPeeks bounds how many peeks are open at once. Each lasts three seconds, and
// a tight machine opens one several times a second.
const maxPeeks = 8

// probe carries out what a proof asks of the server. The requests go through the
// store's own source, so that selectors, namespaces, transports and impersonation
// are those of the main stream; their time limits are the proof's.
func (w *Watcher) probe(ctx context.Context, p probe) {
	switch p {
	case askLatest:
		if bound := w.opts.MaxStaleness; w.state.tight && !w.state.small && bound*4/5 < verdictTime {
			// A bookmark for a peek that is opened when it is needed would come too late.
			w.dropLatePeeks()
			if len(w.peeks) < maxPeeks && w.ordered {
				w.openPeek(ctx)
			}
		}
		w.asked = w.number()
		if !w.ordered { // a fake has no delays
			w.told = &observation{kind: proofListed, version: w.state.version}
			return
		}
		w.side.ask(ctx, &w.calls, w.list(w.source, metav1.ListOptions{Limit: 1}))
	case askPeek:
		w.dropLatePeeks()
		if len(w.peeks) < maxPeeks {
			w.openPeek(ctx)
		}
	case askAudit:
		w.closePeeks()
		w.sink.BeginAudit()
		w.goesBy = w.number()
		w.askAuditPage(ctx, "")
	case askAuditPage:
		w.askAuditPage(ctx, w.auditNext)
	case compare:
		w.told = &observation{kind: auditCompared, err: w.sink.Compare()}
	case endProbe, dropProbe:
		w.side.hangUp()
		w.sink.EndAudit()
		w.alarms[stageAlarm] = time.Time{}
		if p == dropProbe || !w.state.tight {
			w.closePeeks()
		}
	}
}

func (w *Watcher) askAuditPage(ctx context.Context, next string) {
	opts := metav1.ListOptions{Continue: next}
	if w.opts.PageSize > 0 {
		opts.Limit = w.opts.PageSize
	}
	source := w.source
	if w.opts.AuditSource != nil {
		source = w.opts.AuditSource
	}
	w.side.ask(ctx, &w.calls, w.list(source, opts))
}

// probed takes an answer on the side exchange: to the question for the server's
// version, or a page of an audit.
func (w *Watcher) probed(a answer) observation {
	w.side.answers = nil
	if a.err != nil {
		return observation{kind: proofFailed, err: withoutContents(a.err)}
	}
	list, err := meta.ListAccessor(a.list)
	if err != nil {
		return observation{kind: proofFailed, err: &unusable{fmt.Errorf("%T is no list", a.list)}}
	}
	if w.state.proof.stage != auditing {
		return observation{kind: proofListed, version: list.GetResourceVersion()}
	}
	w.auditNext = list.GetContinue()
	if err := meta.EachListItem(a.list, w.audit); err != nil {
		return observation{kind: proofFailed, err: &unusable{fmt.Errorf("%T has items that are no objects", a.list)}}
	}
	return observation{kind: auditListed, version: list.GetResourceVersion(), next: w.auditNext}
}

func (w *Watcher) audit(obj runtime.Object) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	w.sink.Audit(m)
	return nil
}

// peek is a second watch.
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

func (w *Watcher) openPeek(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	p := &peek{cancel: cancel, askedAt: time.Now()}
	w.peeks = append(w.peeks, p)
	call := w.watch(w.watchOptions(false), peekLength)
	w.calls.Go(func() {
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
	})
}

func (w *Watcher) closePeeks() {
	for _, p := range w.peeks {
		p.cancel()
	}
	w.peeks = nil
}

// dropLatePeeks closes the peeks that should have ended by themselves: something
// in between holds them back, or the server does not keep to its time (C4). They
// must not keep new ones from being opened.
func (w *Watcher) dropLatePeeks() {
	w.peeks = slices.DeleteFunc(w.peeks, func(p *peek) bool {
		late := time.Since(p.askedAt) > peekLength+time.Second
		if late {
			p.cancel()
		}
		return late
	})
}

func (w *Watcher) closePeek(p *peek) {
	p.cancel()
	w.peeks = slices.DeleteFunc(w.peeks, func(other *peek) bool { return other == p })
}

// glimpsed takes what came from a peek. Objects are not looked at: the main
// stream is to bring them. It reports false for what comes from a peek that was
// closed.
func (w *Watcher) glimpsed(g glimpse) (o observation, ok bool) {
	if !slices.Contains(w.peeks, g.from) {
		return o, false
	}
	if g.err != nil || !g.open {
		w.closePeek(g.from)
	}
	switch {
	case g.err != nil:
		return observation{kind: proofFailed, err: withoutContents(g.err)}, true
	case !g.open && time.Since(g.from.openedAt) >= peekLength-time.Second:
		return observation{kind: proofEnded}, true
	case !g.open:
		return observation{kind: proofFailed, err: errPeekCut}, true
	case g.event.Type == watch.Error:
		w.closePeek(g.from)
		return observation{kind: proofFailed, err: serverError(g.event.Object)}, true
	}
	if isNil(g.event.Object) {
		return observation{kind: proofFailed, err: &unusable{errNothing}}, true
	}
	m, err := meta.Accessor(g.event.Object)
	switch {
	case err != nil:
		return observation{kind: proofFailed, err: &unusable{err}}, true
	case g.event.Type == watch.Bookmark:
		w.closePeek(g.from) // it has said all
		return observation{kind: proofReached, version: m.GetResourceVersion()}, true
	default:
		return observation{kind: proofMissed, version: m.GetResourceVersion()}, true
	}
}
