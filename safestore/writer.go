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

	token    *token.Token            // the one that the next set will make ready, named when it was begun
	building *draft[T]               // the next set, nil if none is built
	audit    *audit                  // under way, nil if none is
	kind     schema.GroupVersionKind // of the objects of an untyped source, once one was seen
	rewound  bool                    // since the last set: its versions may be used again for something else
}

var _ watcher.Sink = (*writer[Object])(nil)

// Begin implements watcher.Sink.
func (w *writer[T]) Begin() {
	w.token = w.store.tokens.Current()
	w.building = indexedSet[T]{}.edit(w.store.indexes)
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
		return w.building.delete(obj)
	}
	if old, ok := w.store.current.Load().set.objects.get(Key(obj)); ok && w.ordered && !w.rewound && sameVersion(old, obj) {
		return w.building.set(old)
	}
	if obj, err = w.store.transform(obj); err != nil {
		return err
	}
	return w.building.set(obj)
}

// Publish implements watcher.Sink.
func (w *writer[T]) Publish(version string, proof watcher.Proof) (wait time.Duration) {
	set := w.building.finish()
	w.building, w.rewound = nil, false
	return w.store.publish(w.token, set, version, proof)
}

// Prove implements watcher.Sink.
func (w *writer[T]) Prove(proof watcher.Proof) (wait time.Duration) {
	return w.store.prove(proof)
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
	old, exists := snapshot.set.objects.get(Key(obj))
	version := obj.GetResourceVersion()
	if w.ordered {
		switch {
		case exists && versions.Older(version, old.GetResourceVersion()):
			return nil // about an earlier state of this object, or its predecessor
		case exists && event != watch.Deleted && sameVersion(old, obj):
			return nil
		case event == watch.Deleted && !exists:
			return nil
		case event == watch.Deleted && version == old.GetResourceVersion():
			// Some servers send the deleted object as it was last (C36).
		case versions.Older(version, snapshot.version):
			return fmt.Errorf("%s at resource version %s, after %s: %w",
				describe(received), version, snapshot.version, watcher.ErrOutOfOrder)
		}
	}
	if !w.ordered || versions.Older(version, snapshot.version) || version == "" {
		version = snapshot.version
	}
	next := snapshot.set.edit(w.store.indexes)
	if event == watch.Deleted {
		err = next.delete(obj)
	} else if obj, err = w.store.transform(obj); err == nil {
		err = next.set(obj)
	}
	if err == nil {
		w.store.advance(next.finish(), version)
	}
	return err
}

// Advance implements watcher.Sink.
func (w *writer[T]) Advance(version string) {
	if version == "" {
		return
	}
	w.store.advance(w.store.current.Load().set, version)
}

// Revoke implements watcher.Sink. The token that ends is the current one: if the
// program has revoked meanwhile, one that nobody was ready under, to which the
// reason may be news all the same. The set being built goes on under the token
// that follows, unless it was the program's revocation that made it useless.
func (w *writer[T]) Revoke(d invalidation.Decision, cause error) {
	current := w.store.tokens.Current()
	if d.Revoke != "" && w.isNews(current, d.Revoke) {
		if next, ok := w.store.revoke(current, d, cause); ok && w.token == current {
			w.token = next
		}
	}
	if d.Drop {
		w.store.drop(w.store.last.Load()) // if that is all that is new
		w.building = nil
	}
	w.rewound = w.rewound || errors.Is(cause, watcher.ErrOutOfOrder)
}

// isNews reports whether a reason has something to say. While nobody can read,
// the same trouble again ends no further generation, and neither does more of the
// waiting, or the relist, that everybody waits for anyway.
func (w *writer[T]) isNews(current *token.Token, reason invalidation.Reason) bool {
	if current.State() == token.Ready {
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
