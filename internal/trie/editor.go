package trie

// Editor changes a copy of a [Map], made by [Map.Edit]. It is for one goroutine
// at a time, and must not be copied.
type Editor[V any] struct {
	root *node[V] // nil if nothing is left
	len  int

	// edition marks the nodes that this editor has made since it last gave out a
	// Map: nobody else can see those, so they are edited in place, and all others
	// are copied first.
	//
	// No global counter is needed to tell them apart, because an edition only
	// has to be later than those of the nodes that the editor began with. Two
	// editors of one Map do use the same number; but the only way for a node to
	// get from one to the other is through a Map, and an editor of that Map is
	// one edition later.
	edition uint64
}

// Len returns the number of keys.
func (e *Editor[V]) Len() int { return e.len }

// Get returns the value of key, and whether there is one, with all edits so far.
func (e *Editor[V]) Get(key string) (V, bool) {
	return e.root.get(hash(key), key)
}

// Set gives key the value, replacing any it has.
func (e *Editor[V]) Set(key string, value V) {
	e.root = e.set(e.root, 0, hash(key), leaf[V]{key, value})
}

// Delete removes key, and reports whether it was there.
func (e *Editor[V]) Delete(key string) bool {
	h := hash(key)
	if _, ok := e.root.get(h, key); !ok {
		return false // found out first, so as not to copy anything for nothing
	}
	e.len--
	if e.len == 0 {
		e.root = nil
		return true
	}
	e.root = e.delete(e.root, 0, h, key)
	return true
}

// Map returns the contents as they are now. The editor remains usable: what it
// does from here on is not seen in the Map.
func (e *Editor[V]) Map() Map[V] {
	m := Map[V]{root: e.root, len: e.len, edition: e.edition}
	e.edition++ // the Map's nodes are no longer this editor's own
	return m
}
