package trie

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbered returns a map of n keys to a value each.
func numbered(n, value int) Map[int] {
	e := Map[int]{}.Edit()
	for i := range n {
		e.Set(fmt.Sprint("key-", i), value)
	}
	return e.Map()
}

func countNodes[V any](n *node[V]) int {
	if n == nil {
		return 0
	}
	count := 1
	for _, c := range n.children {
		count += countNodes(c)
	}
	return count
}

// countNew counts the nodes of b that are not where they were in a.
func countNew[V any](a, b *node[V]) int {
	if a == b {
		return 0
	}
	count := 1
	for i, place := range places(b.childBits) {
		var was *node[V]
		if a != nil && a.childBits&(1<<place) != 0 {
			was = a.children[index(a.childBits, 1<<place)]
		}
		count += countNew(was, b.children[i])
	}
	return count
}

// One edit copies one path, whatever the size of the map.
func TestVersionsShareNodes(t *testing.T) {
	useHash(t, testHash)
	m := numbered(20_000, 0)
	require.Greater(t, countNodes(m.root), 1000)

	e := m.Edit()
	assert.False(t, e.Delete("other"))
	assert.Same(t, m.root, e.root, "deleting what is not there copies nothing")

	e.Set("key-1", 1)
	assert.LessOrEqual(t, countNew(m.root, e.root), 5, "a change")
	e = m.Edit()
	e.Set("other", 1)
	assert.LessOrEqual(t, countNew(m.root, e.root), 6, "an addition")
	e = m.Edit()
	e.Delete("key-1")
	assert.LessOrEqual(t, countNew(m.root, e.root), 5, "a deletion")
}

// What an editor made, it edits in place, until it has given it out.
func TestEditorCopiesOnce(t *testing.T) {
	e := numbered(1000, 0).Edit()
	e.Set("key-1", 1)
	first := e.root
	e.Set("key-2", 2)
	assert.Same(t, first, e.root)

	m := e.Map()
	e.Set("key-1", 3)
	assert.NotSame(t, first, e.root)
	got, _ := m.Get("key-1")
	assert.Equal(t, 1, got)
}

// Editors of one map use the same edition, and never see each other's nodes.
func TestEditorsOfOneMapAreApart(t *testing.T) {
	m := numbered(100, 0)
	a, b := m.Edit(), m.Edit()
	a.Set("key-1", 1)
	b.Set("key-1", 2)
	fromA := a.Map().Edit()
	fromA.Set("key-1", 3)

	for want, get := range []func(string) (int, bool){m.Get, a.Get, b.Get, fromA.Get} {
		got, ok := get("key-1")
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
}

func TestIterationStops(t *testing.T) {
	m := numbered(1000, 0)
	for limit := range 100 {
		seen := 0
		for range m.All() {
			if seen++; seen > limit {
				break
			}
		}
		assert.Equal(t, limit+1, seen)
	}
}

func TestIterationOrderIsStable(t *testing.T) {
	m := numbered(1000, 0)
	var first []string
	for key := range m.All() {
		first = append(first, key)
	}
	i := 0
	for key := range m.All() {
		require.Equal(t, first[i], key)
		i++
	}
}

// Readers see each version whole, while the editor that made it goes on.
func TestReadersWhileAnEditorWrites(t *testing.T) {
	const keys, versions = 300, 100
	var current atomic.Pointer[Map[int]]
	zero := numbered(keys, 0)
	current.Store(&zero)

	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last := 0; last < versions; {
				m := *current.Load()
				version, _ := m.Get("key-0")
				assert.GreaterOrEqual(t, version, last)
				last = version
				seen := 0
				for key, value := range m.All() {
					if seen++; value != version {
						assert.Equal(t, version, value, key)
						return
					}
				}
				assert.Equal(t, keys, seen)
			}
		})
	}

	e := zero.Edit()
	for version := 1; version <= versions; version++ {
		for i := range keys {
			e.Delete(fmt.Sprint("key-", i))
			e.Set(fmt.Sprint("key-", i), version)
		}
		m := e.Map()
		current.Store(&m)
		runtime.Gosched()
	}
	readers.Wait()
}

func TestReadingDoesNotAllocate(t *testing.T) {
	m := numbered(10_000, 0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		m.Get("key-5000")
		m.Get("other")
	}))
	assert.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		for range m.All() {
		}
	}), 1.0, "the closure")
}
