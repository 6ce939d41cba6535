package trie

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two keys part ways at the level of the first bit in which their hashes
// differ; bit 64 stands for hashes that do not differ at all.
func TestKeysPartAtEachBit(t *testing.T) {
	const h = 0x0123_4567_89ab_cdef
	for bit := range uint(65) {
		t.Run(fmt.Sprint("bit=", bit), func(t *testing.T) {
			useHash(t, func(key string) uint64 {
				if key == "a" || bit == 64 {
					return h
				}
				return h ^ 1<<bit // b and c collide in full
			})
			for _, order := range permutations("a", "b", "c") {
				e := Map[string]{}.Edit()
				for i, key := range order {
					e.Set(key, key)
					require.NoError(t, checkShape(e.root, i+1, e.edition))
				}
				full := e.Map()
				assert.Equal(t, map[string]string{"a": "a", "b": "b", "c": "c"}, maps.Collect(full.All()))
				assert.Equal(t, 3, full.Len())

				for _, order := range permutations("a", "b", "c") {
					e := full.Edit()
					assert.False(t, e.Delete("d"), "of the same hash as b")
					for i, key := range order {
						require.True(t, e.Delete(key))
						require.False(t, e.Delete(key))
						require.NoError(t, checkShape(e.root, 2-i, e.edition))
						if i == 1 {
							assert.Equal(t, 1, countNodes(e.root), "the last leaf moves up to the root")
						}
					}
				}
			}
		})
	}
}

// With one hash for all keys a map is a list, slow but right.
func TestOneHashForAll(t *testing.T) {
	useHash(t, func(string) uint64 { return 1<<64 - 1 })
	e := Map[int]{}.Edit()
	for i := range 100 {
		e.Set(strings.Repeat("x", i), i)
	}
	m := e.Map()
	for i := range 100 {
		got, ok := m.Get(strings.Repeat("x", i))
		require.True(t, ok)
		require.Equal(t, i, got)
	}
	_, ok := m.Get("y")
	assert.False(t, ok)
	require.NoError(t, checkShape(m.root, 100, m.edition))
}

func permutations(keys ...string) (out [][]string) {
	if len(keys) == 0 {
		return [][]string{nil}
	}
	for i, first := range keys {
		var rest []string
		rest = append(append(rest, keys[:i]...), keys[i+1:]...)
		for _, p := range permutations(rest...) {
			out = append(out, append([]string{first}, p...))
		}
	}
	return out
}
