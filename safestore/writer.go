package safestore

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// writer is the writing side of a store. The watcher is the only one to hold it,
// and calls it from one goroutine; nothing else writes objects, not even what a
// program just got from the server (C47).
type writer[T Object] struct {
	store   *Store[T]
	ordered bool // versions tell age and equality

	// token is the one that the watcher means: the current one when it last
	// began, published or revoked.
	token    *token.Token
	building *builder[T]             // the next set, nil if none is built
	audit    *audit                  // under way, nil if none is
	kind     schema.GroupVersionKind // of the objects of an untyped source, once one was seen
	rewound  bool                    // since the last set: its versions may be used again for something else
}

var _ watcher.Sink = (*writer[Object])(nil)

// Begin implements watcher.Sink.
func (w *writer[T]) Begin() {
	w.token = w.store.tokens.Current()
	w.building = objects[T]{}.edit()
	w.kind = schema.GroupVersionKind{}
}

// Build implements watcher.Sink. An object that the store has already, same UID
// and version, is kept in place of its copy, so that a relist without changes
// needs no second set of objects (C42).
func (w *writer[T]) Build(event watch.EventType, received runtime.Object) error {
	obj, err := w.object(received)
	if err != nil {
		return err
	}
	if event == watch.Deleted {
		w.building.delete(Key(obj))
		return nil
	}
	if old, ok := w.store.current.Load().objects.get(Key(obj)); ok && w.ordered && !w.rewound && sameVersion(old, obj) {
		obj = old
	}
	w.building.set(obj)
	return nil
}

// Publish implements watcher.Sink.
func (w *writer[T]) Publish(version string, proof watcher.Proof) (wait time.Duration) {
	set := w.building.objects()
	w.building, w.rewound = nil, false
	wait = w.store.publish(w.token, set, version, proof)
	w.token = w.store.tokens.Current()
	return wait
}

// Prove implements watcher.Sink.
func (w *writer[T]) Prove(proof watcher.Proof) (wait time.Duration) {
	wait = w.store.prove(proof)
	w.token = w.store.tokens.Current()
	return wait
}

// Apply implements watcher.Sink. What the set reflects already is passed over
// (C36): a replayed event, or the deletion of what is not there.
func (w *writer[T]) Apply(event watch.EventType, received runtime.Object) error {
	obj, err := w.object(received)
	if err != nil {
		return err
	}
	w.touch(Key(obj))
	snapshot := w.store.current.Load()
	old, exists := snapshot.objects.get(Key(obj))
	version := obj.GetResourceVersion()
	if w.ordered {
		switch {
		case exists && versions.Older(version, old.GetResourceVersion()):
			return nil // about an earlier state of this object, or its predecessor
		case exists && event != watch.Deleted && sameVersion(old, obj):
			return nil
		case event == watch.Deleted && !exists:
			return nil
		case event != watch.Deleted && versions.Older(version, snapshot.version):
			return fmt.Errorf("%s at resource version %s, after %s: %w",
				describe(received), version, snapshot.version, watcher.ErrOutOfOrder)
		}
	}
	if !w.ordered || versions.Older(version, snapshot.version) || version == "" {
		version = snapshot.version
	}
	if event == watch.Deleted {
		w.store.advance(snapshot.objects.without(Key(obj)), version)
	} else {
		w.store.advance(snapshot.objects.with(obj), version)
	}
	return nil
}

// Advance implements watcher.Sink.
func (w *writer[T]) Advance(version string) {
	if version == "" {
		return
	}
	w.store.advance(w.store.current.Load().objects, version)
}

// Revoke implements watcher.Sink.
func (w *writer[T]) Revoke(d invalidation.Decision, cause error) {
	if d.Drop {
		w.store.drop() // first, so that whoever hears of the refusal finds nothing
	}
	if w.token == nil || w.token != w.store.tokens.Current() {
		w.token = w.store.tokens.Current() // the program was faster
	} else if d.Revoke != "" && w.isNews(d.Revoke) {
		w.token = w.store.revoke(w.token, d.Revoke, cause, d.Recovery != invalidation.ListAll)
	}
	w.rewound = w.rewound || errors.Is(cause, watcher.ErrOutOfOrder)
}

// isNews reports whether a reason has something to say. While nobody can read,
// the same trouble again ends no further generation, and neither does more of the
// waiting, or the relist, that everybody waits for anyway.
func (w *writer[T]) isNews(reason invalidation.Reason) bool {
	if w.token.State() == token.Ready {
		return true
	}
	last := w.store.last.Load()
	return reason != invalidation.Relist && reason != invalidation.Stale && (last == nil || last.Reason != reason)
}

// Unordered implements watcher.Sink.
func (w *writer[T]) Unordered() { w.ordered = false }

// object returns what was received as the store's type, if it can be kept.
func (w *writer[T]) object(received runtime.Object) (T, error) {
	obj, ok := received.(T)
	switch {
	case !ok:
		return obj, fmt.Errorf("%s: the store holds %s", describe(received), typeName[T]())
	case obj.GetName() == "":
		return obj, fmt.Errorf("%s: it has no name", describe(received))
	}
	// Any object is Unstructured: there the kind is the type.
	if _, untyped := received.(*unstructured.Unstructured); untyped {
		kind := received.GetObjectKind().GroupVersionKind()
		if w.kind.Empty() {
			w.kind = kind
		}
		if kind != w.kind {
			return obj, fmt.Errorf("%s is of kind %v: the others are of kind %v", describe(received), kind, w.kind)
		}
	}
	return obj, nil
}

// sameVersion reports whether two objects of one key are the same one in the
// same state.
func sameVersion(a, b Object) bool {
	return a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() && a.GetUID() == b.GetUID()
}
