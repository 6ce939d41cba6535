package safestore

import (
	"maps"
	"slices"
)

// storeMembers are the stores of a set at one moment. It never changes.
type storeMembers[T Object] struct {
	names  []string // sorted
	stores map[string]*Store[T]
	scope  *namespaceScope // the names, as what is read of all the stores
	steps  uint64          // what the steps of stores that have left add to those of the others
}

// of returns the members with these stores in place of the ones before.
func (m *storeMembers[T]) of(set string, stores map[string]*Store[T]) *storeMembers[T] {
	next := &storeMembers[T]{
		names: slices.Sorted(maps.Keys(stores)), stores: stores, steps: m.steps,
		scope: &namespaceScope{set, map[string]bool{}},
	}
	for _, name := range next.names {
		next.scope.namespaces[name] = true
	}
	return next
}
