package controller

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// Source is a store that a controller depends on, and what of its changes means
// work. Make one with [For], [Watches] or [Reads].
type Source struct {
	store safestore.Readiness
	// check returns why the changes cannot be subscribed to; nil if feed is.
	check func(name string) error
	// feed adds the keys of changes until ctx ends; nil if no change means work.
	feed func(ctx context.Context, name string, add func(types.NamespacedName)) error
}

// For is a source of the keys of the own objects of a store, or of namespaces as one:
// of those that all options match; see [safestore.Store.Subscribe] for which can be
// used. The key of an object that was deleted is queued as well, and so are those of
// a namespace that was removed, of which reads then say [safestore.ErrOutOfScope].
func For[T safestore.Object](store safestore.Collection[T], opts ...safestore.ListOption) Source {
	return Watches(store, func(c safestore.Change[T]) []types.NamespacedName {
		return []types.NamespacedName{c.Key}
	}, opts...)
}

// Watches is a source of the keys that a function makes of each change, which is
// Added, Updated or Deleted, and may be none. A key that is left out is not worked
// on for this change, so the function goes by the change alone and reads no store.
// Of an object that refers to another one both Old and New count: [OldAndNew] sees
// to it. It panics if the function is nil.
func Watches[T safestore.Object](
	store safestore.Collection[T], keys func(safestore.Change[T]) []types.NamespacedName, opts ...safestore.ListOption,
) Source {
	if keys == nil {
		panic("controller: Watches with a nil function")
	}
	feed := func(ctx context.Context, name string, add func(types.NamespacedName)) error {
		return store.Subscribe(name, opts...).Handle(ctx, func(c safestore.Change[T]) error {
			switch c.Type {
			case safestore.Added, safestore.Updated, safestore.Deleted:
				for _, key := range keys(c) {
					add(key)
				}
			}
			return nil
		})
	}
	check := func(name string) error { return store.Subscribe(name, opts...).Err() }
	return Source{store, check, feed}
}

// OldAndNew makes a function for [Watches] of one that says which keys an object
// concerns. What a change takes an object away from is queued as well as what it
// brings it to. It panics if the function is nil.
func OldAndNew[T safestore.Object](keys func(T) []types.NamespacedName) func(safestore.Change[T]) []types.NamespacedName {
	if keys == nil {
		panic("controller: OldAndNew with a nil function")
	}
	return func(c safestore.Change[T]) (all []types.NamespacedName) {
		if c.Type != safestore.Added {
			all = keys(c.Old)
		}
		if c.Type != safestore.Deleted {
			all = slices.Concat(all, keys(c.New))
		}
		return all
	}
}

// Reads is a store, or a group of stores, that work depends on and whose changes do
// not mean any: it has to be ready, and is part of the snapshots.
func Reads(store safestore.Readiness) Source { return Source{store: store} }

// storesOf returns the stores of the sources, each once.
func storesOf(sources []Source) (stores []safestore.Readiness, err error) {
	err = errors.New("there is no source of changes")
	for _, source := range sources {
		if source.feed != nil {
			err = nil
		}
		if !slices.Contains(stores, source.store) {
			stores = append(stores, source.store)
		}
	}
	return stores, err
}
