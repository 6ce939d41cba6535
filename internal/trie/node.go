package trie

import (
	"hash/maphash"
	"math/bits"
)

// A node has 64 places. On the way down from the root, each level uses up the
// next levelBits of the hash to choose one.
const (
	levelBits = 6
	levelMask = 1<<levelBits - 1
	hashBits  = 64
)

// bitmap has one bit for each place of a node.
type bitmap = uint64

// node is one level of the trie. Each of its places is empty, or holds a leaf,
// or a child with at least two leaves below it; a lone leaf is kept in the
// parent, at any depth. So the shape follows from the contents alone, however
// they came about, and deleting gives back all that setting took.
//
// Where the bits of the hash are used up, a node has no places, and leaves in
// any order, two or more, with the same hash.
//
// All methods take a nil node as an empty one.
type node[V any] struct {
	edition   uint64 // of the Editor that made it, and may change it
	leafBits  bitmap // places that hold a leaf
	childBits bitmap // places that hold a child; none are in both

	// Full places only, in the order of their bits. The leaves are never written
	// to, only replaced, so that versions of a node can share them; what a path
	// copy duplicates is then just the children, which are one word each.
	leaves   []leaf[V]
	children []*node[V]
}

// leaf is one key with its value. It does not keep the hash: leaves a third
// larger cost more than computing it again when two leaves part ways.
type leaf[V any] struct {
	key   string
	value V
}

var seed = maphash.MakeSeed()

// hash is a variable for the sake of tests, which need keys that collide.
var hash = func(key string) uint64 { return maphash.String(seed, key) }

// place returns the bit of the place that h leads to after shift bits.
func place(h uint64, shift uint) bitmap {
	return 1 << (h >> shift & levelMask)
}

// index returns where in its slice the place of bit is, or would be.
func index(full, bit bitmap) int {
	return bits.OnesCount64(full & (bit - 1))
}

// get returns the value of key, whose hash is h, and whether there is one. It
// is meant for a root.
func (n *node[V]) get(h uint64, key string) (value V, ok bool) {
	if n == nil {
		return value, false
	}
	for shift := uint(0); shift < hashBits; shift += levelBits {
		bit := place(h, shift)
		switch {
		case n.childBits&bit != 0:
			n = n.children[index(n.childBits, bit)]
		case n.leafBits&bit != 0:
			if l := &n.leaves[index(n.leafBits, bit)]; l.key == key {
				return l.value, true
			}
			return value, false
		default:
			return value, false
		}
	}
	if i := n.search(key); i >= 0 {
		return n.leaves[i].value, true
	}
	return value, false
}

// search returns the index of key among leaves with the same hash, or -1.
func (n *node[V]) search(key string) int {
	for i := range n.leaves {
		if n.leaves[i].key == key {
			return i
		}
	}
	return -1
}

// each calls yield for all leaves until it returns false, and reports whether
// it never did.
func (n *node[V]) each(yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.leaves {
		if !yield(n.leaves[i].key, n.leaves[i].value) {
			return false
		}
	}
	for _, c := range n.children {
		if !c.each(yield) {
			return false
		}
	}
	return true
}
