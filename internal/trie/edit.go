package trie

import "slices"

// own returns a node with the contents of n whose fields and children the
// editor may change: n itself, if it is the editor's already.
func (e *Editor[V]) own(n *node[V]) *node[V] {
	switch {
	case n == nil:
		return &node[V]{edition: e.edition}
	case n.edition == e.edition:
		return n
	default:
		return &node[V]{
			edition:   e.edition,
			leafBits:  n.leafBits,
			childBits: n.childBits,
			leaves:    n.leaves,
			children:  slices.Clone(n.children),
		}
	}
}

// set returns n with the leaf l, whose hash is h, after shift bits of it.
func (e *Editor[V]) set(n *node[V], shift uint, h uint64, l leaf[V]) *node[V] {
	n = e.own(n)
	if shift >= hashBits {
		if i := n.search(l.key); i >= 0 {
			n.leaves = replaced(n.leaves, i, l)
		} else {
			n.leaves = inserted(n.leaves, len(n.leaves), l)
			e.len++
		}
		return n
	}

	bit := place(h, shift)
	i, j := index(n.leafBits, bit), index(n.childBits, bit)
	switch {
	case n.childBits&bit != 0:
		n.children[j] = e.set(n.children[j], shift+levelBits, h, l)
	case n.leafBits&bit == 0:
		n.leafBits |= bit
		n.leaves = inserted(n.leaves, i, l)
		e.len++
	case n.leaves[i].key == l.key:
		n.leaves = replaced(n.leaves, i, l)
	default: // another key's leaf: both move into a new child
		old := n.leaves[i]
		n.leafBits &^= bit
		n.leaves = removed(n.leaves, i)
		n.childBits |= bit
		n.children = inserted(n.children, j, e.pair(shift+levelBits, hash(old.key), old, h, l))
		e.len++
	}
	return n
}

// pair returns a node with two leaves, whose hashes are the same up to shift.
func (e *Editor[V]) pair(shift uint, ha uint64, a leaf[V], hb uint64, b leaf[V]) *node[V] {
	if shift >= hashBits {
		return &node[V]{edition: e.edition, leaves: []leaf[V]{a, b}}
	}
	switch bitA, bitB := place(ha, shift), place(hb, shift); {
	case bitA < bitB:
		return &node[V]{edition: e.edition, leafBits: bitA | bitB, leaves: []leaf[V]{a, b}}
	case bitA > bitB:
		return &node[V]{edition: e.edition, leafBits: bitA | bitB, leaves: []leaf[V]{b, a}}
	default:
		child := e.pair(shift+levelBits, ha, a, hb, b)
		return &node[V]{edition: e.edition, childBits: bitA, children: []*node[V]{child}}
	}
}

// delete returns n without key, whose hash is h, after shift bits of it. The
// key must be there. Only a root may end up empty.
func (e *Editor[V]) delete(n *node[V], shift uint, h uint64, key string) *node[V] {
	n = e.own(n)
	if shift >= hashBits {
		n.leaves = removed(n.leaves, n.search(key))
		return n
	}

	bit := place(h, shift)
	i, j := index(n.leafBits, bit), index(n.childBits, bit)
	if n.leafBits&bit != 0 {
		n.leafBits &^= bit
		n.leaves = removed(n.leaves, i)
		return n
	}
	child := e.delete(n.children[j], shift+levelBits, h, key)
	if len(child.leaves) == 1 && len(child.children) == 0 {
		// The lone leaf moves up. If it is alone here too, it goes on moving.
		n.leafBits |= bit
		n.leaves = inserted(n.leaves, i, child.leaves[0])
		n.childBits &^= bit
		n.children = removed(n.children, j)
		return n
	}
	n.children[j] = child
	return n
}
