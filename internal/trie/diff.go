package trie

import "math/bits"

// Diff calls yield for each key that the two maps do not hold alike, until it
// returns false, and reports whether it never did. The values are nil where the
// map does not have the key; where both have it, same decides whether the values
// are alike. Values must not be changed through the pointers.
//
// What the maps share is not looked at: between two versions of one map it takes
// about as long as it took to make the one from the other. The order is no
// particular one, but for the same two maps it is always the same.
func Diff[V any](old, new Map[V], same func(old, new V) bool, yield func(key string, old, new *V) bool) bool {
	d := diff[V]{same, yield}
	return d.nodes(old.root, new.root, 0)
}

type diff[V any] struct {
	same  func(old, new V) bool
	yield func(key string, old, new *V) bool
}

// nodes compares two nodes at the same place, shift bits down.
func (d diff[V]) nodes(a, b *node[V], shift uint) bool {
	switch {
	case a == b:
		return true
	case a == nil:
		return d.all(b, true)
	case b == nil:
		return d.all(a, false)
	case shift >= hashBits:
		return d.lists(a, b)
	}
	// Each place of a is empty, a leaf or a child, and so is that of b.
	for full := a.leafBits | a.childBits | b.leafBits | b.childBits; full != 0; full &= full - 1 {
		bit := bitmap(1) << bits.TrailingZeros64(full)
		la, ca := a.at(bit)
		lb, cb := b.at(bit)
		var on bool
		switch {
		case la != nil && lb != nil:
			on = d.leaves(la, lb)
		case la != nil:
			on = d.leafAndNode(la, cb, true)
		case lb != nil:
			on = d.leafAndNode(lb, ca, false)
		default:
			on = d.nodes(ca, cb, shift+levelBits)
		}
		if !on {
			return false
		}
	}
	return true
}

// at returns what is at the place of bit: at most one of them is not nil.
func (n *node[V]) at(bit bitmap) (*leaf[V], *node[V]) {
	switch {
	case n.leafBits&bit != 0:
		return &n.leaves[index(n.leafBits, bit)], nil
	case n.childBits&bit != 0:
		return nil, n.children[index(n.childBits, bit)]
	default:
		return nil, nil
	}
}

// leaves compares the leaves at one place.
func (d diff[V]) leaves(a, b *leaf[V]) bool {
	switch {
	case a.key != b.key:
		return d.yield(a.key, &a.value, nil) && d.yield(b.key, nil, &b.value)
	case !d.same(a.value, b.value):
		return d.yield(a.key, &a.value, &b.value)
	default:
		return true
	}
}

// leafAndNode compares a leaf of one map, the old one if it is said to be, with
// what the other has at that place: a node, or nothing.
func (d diff[V]) leafAndNode(l *leaf[V], n *node[V], old bool) bool {
	found := false
	on := n.eachLeaf(func(other *leaf[V]) bool {
		switch {
		case other.key != l.key:
			return d.one(other, old) // it is in the other map
		case old:
			found = true
			return d.leaves(l, other)
		default:
			found = true
			return d.leaves(other, l)
		}
	})
	return on && (found || d.one(l, !old))
}

// lists compares nodes whose leaves are in no order.
func (d diff[V]) lists(a, b *node[V]) bool {
	for i := range a.leaves {
		l := &a.leaves[i]
		j := b.search(l.key)
		if j < 0 && !d.one(l, false) || j >= 0 && !d.leaves(l, &b.leaves[j]) {
			return false
		}
	}
	for i := range b.leaves {
		if l := &b.leaves[i]; a.search(l.key) < 0 && !d.one(l, true) {
			return false
		}
	}
	return true
}

// all yields what only one of the maps has.
func (d diff[V]) all(n *node[V], isNew bool) bool {
	return n.eachLeaf(func(l *leaf[V]) bool { return d.one(l, isNew) })
}

// one yields a leaf that only one of the maps has.
func (d diff[V]) one(l *leaf[V], isNew bool) bool {
	if isNew {
		return d.yield(l.key, nil, &l.value)
	}
	return d.yield(l.key, &l.value, nil)
}

// eachLeaf is each, without copying the values.
func (n *node[V]) eachLeaf(yield func(*leaf[V]) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.leaves {
		if !yield(&n.leaves[i]) {
			return false
		}
	}
	for _, c := range n.children {
		if !c.eachLeaf(yield) {
			return false
		}
	}
	return true
}
