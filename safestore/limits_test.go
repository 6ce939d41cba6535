package safestore

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// C42: a set that outgrows its limit is not kept; the one that fits goes on being
// what Stale returns.
func TestC42MaxObjects(t *testing.T) {
	r := newRig(t)
	r.limits = limits{objects: 2}
	r.publishSet(t, "1", mapOf("A", "a", "1"), mapOf("A", "b", "1"))
	require.NoError(t, r.Apply(watch.Modified, mapOf("A", "b", "2")), "no more than there were")
	err := r.Apply(watch.Added, mapOf("A", "c", "3"))
	require.ErrorIs(t, err, watcher.ErrTooLarge)
	assert.EqualError(t, err, "the set is too large: it has more than 2 objects")
	stale, _ := r.Stale()
	assert.Equal(t, 2, stale.Len())

	r.Begin()
	require.NoError(t, r.Build(watch.Added, mapOf("A", "a", "1")))
	require.NoError(t, r.Build(watch.Added, mapOf("A", "b", "2")))
	assert.ErrorIs(t, r.Build(watch.Added, mapOf("B", "c", "3")), watcher.ErrTooLarge)

	require.NoError(t, r.Apply(watch.Deleted, mapOf("A", "a", "4")))
	assert.NoError(t, r.Apply(watch.Added, mapOf("A", "c", "5")), "there is room again")
}

// What cannot be kept takes up room all the same: whoever may write objects must
// not be able to fill the memory.
func TestC42QuarantineCounts(t *testing.T) {
	r := lenient(t)
	r.limits = limits{objects: 1}
	r.Begin()
	require.NoError(t, r.Build(watch.Added, untyped("A", "a", "1", int64(1))))
	assert.ErrorIs(t, r.Build(watch.Added, untyped("A", "b", "1", int64(1))), watcher.ErrTooLarge)
}

func TestC42MaxBytes(t *testing.T) {
	of := func(version string, n int) *Map {
		m := mapOf("A", "a", version)
		m.BinaryData = map[string][]byte{"k": make([]byte, n)}
		return m
	}
	r := newRig(t)
	r.limits = limits{bytes: 10_000}
	r.publishSet(t, "1", of("1", 5_000))
	for version := range 10 { // replaced, not added
		require.NoError(t, r.Apply(watch.Modified, of(string(rune('2'+version)), 9_000)))
	}
	err := r.Apply(watch.Modified, of("99", 10_000))
	assert.EqualError(t, err, "the set is too large: its objects have more than 10000 bytes")
	require.NoError(t, r.Apply(watch.Deleted, of("99", 0)))
	assert.Zero(t, r.current.Load().set.bytes, "what is gone does not count")

	u := untyped("A", "a", "1", "text")
	assert.Greater(t, limits{bytes: 1}.size(u), int64(20), "what has no encoded size of its own is measured as JSON")
	assert.Zero(t, limits{}.size(u), "nothing is measured without a limit")
}
