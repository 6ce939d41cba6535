package trie

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pair is what two maps have under one key; nil for nothing.
type pair struct{ old, new *int }

func (p pair) String() string {
	text := func(v *int) string {
		if v == nil {
			return "nothing"
		}
		return fmt.Sprint(*v)
	}
	return text(p.old) + " to " + text(p.new)
}

// differences is what Diff says, in words.
func differences(t *testing.T, a, b Map[int]) map[string]string {
	t.Helper()
	got := map[string]string{}
	assert.True(t, Diff(a, b, equal, func(key string, old, new *int) bool {
		require.NotContains(t, got, key, "each key is told once")
		got[key] = pair{old, new}.String()
		return true
	}))
	return got
}

func equal(a, b int) bool { return a == b }

// naive is the difference of two Go maps.
func naive(a, b map[string]int) map[string]string {
	want := map[string]string{}
	for key, old := range a {
		if now, ok := b[key]; !ok {
			want[key] = pair{&old, nil}.String()
		} else if now != old {
			want[key] = pair{&old, &now}.String()
		}
	}
	for key, now := range b {
		if _, ok := a[key]; !ok {
			want[key] = pair{nil, &now}.String()
		}
	}
	return want
}

// Whichever two maps: versions of one, or built apart and alike, with hashes that
// collide early, late or in full.
func TestDiffEqualsItsModel(t *testing.T) {
	for _, mask := range masks {
		t.Run(fmt.Sprintf("mask=%#x", mask), func(t *testing.T) {
			useHash(t, func(key string) uint64 { return testHash(key) & mask })
			for n := range uint64(100) {
				seed := *firstSeed + n
				if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { randomDiff(t, seed) }) {
					return
				}
			}
		})
	}
}

func randomDiff(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	keys := 1 + rnd.IntN(200)
	change := func(e *Editor[int], model map[string]int, times int) {
		for range times {
			key, value := fmt.Sprint("key-", rnd.IntN(keys)), rnd.IntN(3)
			if rnd.IntN(3) == 0 {
				e.Delete(key)
				delete(model, key)
			} else {
				e.Set(key, value)
				model[key] = value
			}
		}
	}
	e, oldModel := Map[int]{}.Edit(), map[string]int{}
	change(e, oldModel, rnd.IntN(2*keys))
	old := e.Map()

	newModel := maps.Clone(oldModel)
	if rnd.IntN(2) == 0 { // shares no node
		e = Map[int]{}.Edit()
		for key, value := range oldModel {
			e.Set(key, value)
		}
	}
	change(e, newModel, rnd.IntN(keys))
	next := e.Map()

	require.Equal(t, naive(oldModel, newModel), differences(t, old, next))
	require.Equal(t, naive(newModel, oldModel), differences(t, next, old), "the other way")
	require.Empty(t, differences(t, next, next))
}

// What is asked for again comes again in the same order, and stops where it is
// told to.
func TestDiffStopsAndRepeats(t *testing.T) {
	for _, mask := range masks {
		useHash(t, func(key string) uint64 { return testHash(key) & mask })
		e := numbered(50, 0).Edit()
		for i := range 20 {
			e.Delete(fmt.Sprint("key-", i))
			e.Set(fmt.Sprint("key-", i+20), 1)
			e.Set(fmt.Sprint("other-", i), 1)
		}
		old, next := numbered(50, 0), e.Map()
		var all []string
		Diff(old, next, equal, func(key string, _, _ *int) bool { all = append(all, key); return true })
		require.Len(t, all, 60)
		for n := 1; n <= len(all); n++ {
			var first []string
			assert.False(t, Diff(old, next, equal, func(key string, _, _ *int) bool {
				first = append(first, key)
				return len(first) < n
			}))
			require.Equal(t, all[:n], first)
		}
	}
}

// Between versions of one map only the paths that were edited are looked at.
func TestDiffSkipsWhatIsShared(t *testing.T) {
	useHash(t, testHash)
	m := numbered(100_000, 0)
	e := m.Edit()
	e.Set("key-1", 1)
	e.Delete("key-2")
	e.Set("other", 1)
	next := e.Map()

	compared, told := 0, 0
	same := func(a, b int) bool { compared++; return a == b }
	Diff(m, next, same, func(string, *int, *int) bool { told++; return true })
	assert.Equal(t, 3, told)
	assert.Less(t, compared, 3*4*64, "no more than the leaves on three paths")
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		Diff(m, next, equal, func(string, *int, *int) bool { return true })
	}))
}

// BenchmarkDiff shows that the size of the map hardly counts, but for maps that
// share nothing, as when all was listed again.
func BenchmarkDiff(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		m := numbered(size, 0)
		for _, edits := range []int{1, 100} {
			e := m.Edit()
			for i := range edits {
				e.Set(fmt.Sprint("key-", i), 1)
			}
			benchmarkDiff(b, fmt.Sprintf("keys=%d/edits=%d", size, edits), m, e.Map(), edits)
		}
		benchmarkDiff(b, fmt.Sprintf("keys=%d/apart", size), m, numbered(size, 0), 0)
	}
}

func benchmarkDiff(b *testing.B, name string, old, next Map[int], want int) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			told := 0
			Diff(old, next, equal, func(string, *int, *int) bool { told++; return true })
			if told != want {
				b.Fatalf("%d differences", told)
			}
		}
	})
}
