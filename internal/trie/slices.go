package trie

import "slices"

// These return a changed copy, never larger than it needs to be: most nodes are
// not touched again for a long time, and room to grow in each would be a large
// part of the memory of a map.

// inserted returns a copy of s with x at i.
func inserted[T any](s []T, i int, x T) []T {
	t := make([]T, len(s)+1)
	copy(t, s[:i])
	t[i] = x
	copy(t[i+1:], s[i:])
	return t
}

// replaced returns a copy of s with x at i instead of what was there.
func replaced[T any](s []T, i int, x T) []T {
	t := slices.Clone(s)
	t[i] = x
	return t
}

// removed returns a copy of s without the element at i.
func removed[T any](s []T, i int) []T {
	t := make([]T, len(s)-1)
	copy(t, s[:i])
	copy(t[i:], s[i+1:])
	return t
}
