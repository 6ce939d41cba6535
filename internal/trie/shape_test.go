package trie

import (
	"fmt"
	"math/bits"
	"slices"
)

// checkShape returns an error that names the first thing wrong with a trie: the
// rules are those of [node].
func checkShape[V any](root *node[V], length int, edition uint64) error {
	if root == nil {
		if length != 0 {
			return fmt.Errorf("no root, but a length of %d", length)
		}
		return nil
	}
	if root.edition > edition {
		return fmt.Errorf("root of edition %d in edition %d", root.edition, edition)
	}
	n, err := root.check(0, 0)
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("a root without a leaf")
	case n != length:
		return fmt.Errorf("%d leaves, but a length of %d", n, length)
	}
	return nil
}

// check returns the number of leaves in n, which is where the low shift bits of
// a hash lead if they are those of prefix.
func (n *node[V]) check(shift uint, prefix uint64) (leaves int, err error) {
	fail := func(format string, args ...any) (int, error) {
		return 0, fmt.Errorf("after %d bits, %#x: "+format, append([]any{shift, prefix}, args...)...)
	}
	if shift >= hashBits {
		if n.leafBits|n.childBits != 0 || len(n.children) > 0 {
			return fail("places below the end of the hash")
		}
		for i, l := range n.leaves {
			if hash(l.key) != prefix {
				return fail("%q has hash %#x", l.key, hash(l.key))
			}
			if n.search(l.key) != i {
				return fail("%q is there twice", l.key)
			}
		}
		return len(n.leaves), nil
	}

	if n.leafBits&n.childBits != 0 {
		return fail("places with a leaf and a child: %#x", n.leafBits&n.childBits)
	}
	if bits.OnesCount64(n.leafBits) != len(n.leaves) || bits.OnesCount64(n.childBits) != len(n.children) {
		return fail("%d leaves for %#x, %d children for %#x", len(n.leaves), n.leafBits, len(n.children), n.childBits)
	}
	for i, b := range places(n.leafBits) {
		h, want := hash(n.leaves[i].key), prefix|uint64(b)<<shift
		if low := uint64(1)<<(shift+levelBits) - 1; h&low != want {
			return fail("%q has hash %#x, but is at place %d", n.leaves[i].key, h, b)
		}
	}
	leaves = len(n.leaves)
	for i, b := range places(n.childBits) {
		c := n.children[i]
		if c.edition > n.edition {
			return fail("edition %d above edition %d", n.edition, c.edition)
		}
		below, err := c.check(shift+levelBits, prefix|uint64(b)<<shift)
		if err != nil {
			return 0, err
		}
		if below < 2 {
			return fail("a child with %d leaves at place %d", below, b)
		}
		leaves += below
	}
	return leaves, nil
}

// places returns the numbers of the bits that are set.
func places(b bitmap) (out []uint) {
	for ; b != 0; b &= b - 1 {
		out = append(out, uint(bits.TrailingZeros64(b)))
	}
	return out
}

// sameShape reports whether two tries have the same nodes, where only leaves
// with the same hash may be in another order.
func sameShape[V any](a, b *node[V]) bool {
	if a == nil || b == nil {
		return a == b
	}
	keys := func(n *node[V]) (out []string) {
		for _, l := range n.leaves {
			out = append(out, l.key)
		}
		if n.leafBits == 0 {
			slices.Sort(out)
		}
		return out
	}
	return a.leafBits == b.leafBits && a.childBits == b.childBits &&
		slices.Equal(keys(a), keys(b)) &&
		slices.EqualFunc(a.children, b.children, sameShape[V])
}
