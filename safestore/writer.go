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
	w.building = w.store.edit(indexedSet[T]{})
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
		return w.building.delete(Key(obj))
	}
	set := w.store.current.Load().set
	if old, ok := set.objects.get(Key(obj)); ok && w.ordered && !w.rewound && identityOf(old).same(identityOf(obj)) {
		return w.building.set(old)
	}
	return w.put(w.building, obj)
}

// Publish implements watcher.Sink.
func (w *writer[T]) Publish(version string, proof watcher.Proof) (wait time.Duration) {
	set := w.building.finish()
	w.building, w.rewound = nil, false
	w.store.mutations.replace(set.objects)
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
	key := Key(obj)
	w.touch(key)
	snapshot := w.store.current.Load()
	old, exists := snapshot.set.identity(key)
	version := obj.GetResourceVersion()
	if w.ordered {
		switch {
		case exists && versions.Older(version, old.version):
			return nil // about an earlier state of this object, or its predecessor
		case exists && event != watch.Deleted && old.same(identityOf(obj)):
			return nil
		case event == watch.Deleted && !exists:
			return nil
		case event == watch.Deleted && version == old.version:
			// Some servers send the deleted object as it was last (C36).
		case versions.Older(version, snapshot.version):
			return fmt.Errorf("%s at resource version %s, after %s: %w",
				describe(received), version, snapshot.version, watcher.ErrOutOfOrder)
		}
	}
	if !w.ordered || versions.Older(version, snapshot.version) || version == "" {
		version = snapshot.version
	}
	next := w.store.edit(snapshot.set)
	if event == watch.Deleted {
		err = next.delete(key)
	} else {
		err = w.put(next, obj)
	}
	if err == nil {
		set := next.finish()
		w.store.mutations.change(key, set.objects)
		w.store.advance(set, version)
	}
	return err
}

// put sets what was received in a draft, decoded and transformed. If that fails a
// lenient store takes note of it, and goes on.
func (w *writer[T]) put(d *draft[T], received Object) error {
	obj, err := w.store.keep(received)
	if err == nil {
		err = d.set(obj)
	}
	var blame *BadObjectError
	if w.store.lenient && errors.As(err, &blame) {
		return d.quarantine(blame)
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

// object returns what was received if it is of a type that the store can hold.
func (w *writer[T]) object(received runtime.Object) (Object, error) {
	obj, ok := received.(Object)
	if !ok || obj.GetName() == "" {
		return nil, fmt.Errorf("%s: it has no name", describe(received))
	}
	_, own := received.(T)
	_, untyped := received.(*unstructured.Unstructured)
	if err := w.store.scope.admit(obj); err != nil {
		return nil, err
	}
	if !untyped {
		if !own {
			return nil, w.mismatch(received)
		}
		return obj, nil
	}
	// Any object is Unstructured: there the kind is the type.
	kind := received.GetObjectKind().GroupVersionKind()
	if w.kind.Empty() {
		w.kind = kind
	}
	switch {
	case kind != w.kind:
		return nil, fmt.Errorf("%s is of kind %v: the others are of kind %v", describe(received), kind, w.kind)
	case !own && !convertible[T](kind.Kind):
		return nil, w.mismatch(received)
	}
	return obj, nil
}

func (w *writer[T]) mismatch(received runtime.Object) error {
	return fmt.Errorf("%s: the store holds %s", describe(received), typeName[T]())
}
