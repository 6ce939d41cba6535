package trie

import "iter"

// Map is an immutable map from string to V. The zero value is an empty map.
//
// Copying a Map is cheap and copies nothing it holds. A Map is changed by
// [Map.Edit], which leaves it as it is and makes another.
type Map[V any] struct {
	root    *node[V] // nil if the map is empty
	len     int
	edition uint64 // no node under root is of a later edition
}

// Len returns the number of keys.
func (m Map[V]) Len() int { return m.len }

// Get returns the value of key, and whether there is one.
func (m Map[V]) Get(key string) (V, bool) {
	return m.root.get(hash(key), key)
}

// All iterates over the map in no particular order, which is the same each time
// for one Map.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.each(yield) }
}

// Each calls yield for all keys and values until it returns false, and reports
// whether it never did: [Map.All] without an iterator, for maps of maps.
func (m Map[V]) Each(yield func(string, V) bool) bool { return m.root.each(yield) }

// Edit returns an editor that starts from the contents of m.
func (m Map[V]) Edit() *Editor[V] {
	return &Editor[V]{root: m.root, len: m.len, edition: m.edition + 1}
}
