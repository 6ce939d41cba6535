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
	audit    *audit[T]               // under way, nil if none is
	deleted  memory                  // what was deleted while proofs are under way, nil if none is
	audited  string                  // the newest version at which an audit has found the set to be right
	changes  int                     // made by events
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

// Discard implements watcher.Sink.
func (w *writer[T]) Discard() { w.building = nil }

// Publish implements watcher.Sink.
func (w *writer[T]) Publish(version string, proof watcher.Proof, grant bool) (wait time.Duration) {
	set := w.building.finish()
	w.building, w.rewound, w.audited = nil, false, version
	w.store.mutations.replace(set.objects)
	return w.store.publish(w.token, set, version, proof, grant)
}

// Prove implements watcher.Sink.
func (w *writer[T]) Prove(proof watcher.Proof) (wait time.Duration) {
	return w.store.prove(proof)
}

// Apply implements watcher.Sink.
func (w *writer[T]) Apply(event watch.EventType, received runtime.Object, streamed string) error {
	obj, err := w.object(received)
	if err != nil {
		return err
	}
	key := Key(obj)
	snapshot := w.store.current.Load()
	held, exists := snapshot.set.identity(key)
	if w.ordered {
		known, err := w.isKnown(event, held, exists, identityOf(obj), streamed)
		if err != nil {
			return fmt.Errorf("%s at resource version %s: %w", describe(received), obj.GetResourceVersion(), err)
		}
		if known {
			return nil
		}
	}
	next := w.store.edit(snapshot.set)
	if event == watch.Deleted {
		err = next.delete(key)
		w.deleted.note(key, held.uid)
	} else {
		err = w.put(next, obj)
	}
	if err == nil {
		w.changes++
		set := next.finish()
		w.store.mutations.change(key, set.objects)
		w.store.advance(set, w.versionAfter(snapshot.version, obj.GetResourceVersion()))
	}
	return err
}

// isKnown reports whether the set reflects an event already, as when it is sent again. It
// fails for an event that the watch cannot bring after what it has brought, and for one
// that the set lacks although it was shown to be complete there.
//
// An event about an object that the set does not have, from before an audit, is of one
// that is gone again: the audit would have listed it.
func (w *writer[T]) isKnown(
	event watch.EventType, held identity, exists bool, sent identity, streamed string,
) (bool, error) {
	complete := w.store.current.Load().version
	switch {
	case exists && versions.Older(sent.version, held.version):
		return true, nil // about an earlier state of this object, or its predecessor
	case exists && event != watch.Deleted && held.same(sent):
		return true, nil
	case event == watch.Deleted && !exists:
		return true, nil
	case event == watch.Deleted && sent.version == held.version:
		return false, nil // some servers send the deleted object as it was last
	case versions.Older(sent.version, streamed):
		return false, fmt.Errorf("after %s: %w", streamed, watcher.ErrOutOfOrder)
	case !versions.Older(sent.version, complete):
		return false, nil
	case !exists && versions.Reached(w.audited, sent.version):
		return true, nil
	default:
		return false, fmt.Errorf("complete at %s: %w", complete, watcher.ErrContradicts)
	}
}

// versionAfter returns the version of a set at that version after an event.
func (w *writer[T]) versionAfter(version, sent string) string {
	if !w.ordered || sent == "" || versions.Older(sent, version) {
		return version
	}
	return sent
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
