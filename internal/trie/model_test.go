package trie

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program is a sequence of operations in a form that a random source and a
// fuzzer can both produce: the first byte chooses the hash, and each pair of
// bytes after it is an operation and its argument.
type program []byte

// version is a Map that was given out, and what it must hold for ever.
type version struct {
	m     Map[int]
	model map[string]int
}

// run executes p on tries and on Go maps alike. It goes back to earlier
// versions and edits those too, and checks each one again at the end.
func (p program) run(t *testing.T) {
	if len(p) == 0 {
		return
	}
	mask := masks[int(p[0])%len(masks)]
	useHash(t, func(key string) uint64 { return testHash(key) & mask })

	var (
		e       = Map[int]{}.Edit()
		model   = map[string]int{}
		history = []version{{Map[int]{}, map[string]int{}}}
	)
	for i := 1; i+1 < len(p); i += 2 {
		arg := p[i+1]
		key := fmt.Sprint("key-", arg)
		switch p[i] % 8 {
		case 0, 1, 2:
			e.Set(key, i)
			model[key] = i
		case 3, 4:
			_, there := model[key]
			delete(model, key)
			require.Equal(t, there, e.Delete(key), "step %d: Delete(%q)", i, key)
		case 5:
			want, there := model[key]
			got, ok := e.Get(key)
			require.Equal(t, there, ok, "step %d: Get(%q)", i, key)
			require.Equal(t, want, got, "step %d: Get(%q)", i, key)
		case 6:
			history = append(history, version{e.Map(), maps.Clone(model)})
		case 7:
			old := history[int(arg)%len(history)]
			e, model = old.m.Edit(), maps.Clone(old.model)
		}
		require.NoError(t, checkShape(e.root, e.Len(), e.edition), "step %d", i)
	}

	for i, v := range append(history, version{e.Map(), model}) {
		requireVersion(t, v, i)
	}
}

// requireVersion checks everything that can be asked of a Map.
func requireVersion(t *testing.T, v version, i int) {
	require.NoError(t, checkShape(v.m.root, v.m.len, v.m.edition), "version %d", i)
	require.Equal(t, len(v.model), v.m.Len(), "version %d", i)
	if got := maps.Collect(v.m.All()); !maps.Equal(v.model, got) {
		require.Equal(t, v.model, got, "version %d", i)
	}
	for arg := range 256 {
		key := fmt.Sprint("key-", arg)
		want, there := v.model[key]
		if got, ok := v.m.Get(key); got != want || ok != there {
			t.Fatalf("version %d: Get(%q) = %d, %t; want %d, %t", i, key, got, ok, want, there)
		}
	}

	fresh := Map[int]{}.Edit()
	for key, value := range v.model {
		fresh.Set(key, value)
	}
	require.True(t, sameShape(v.m.root, fresh.root), "version %d is not like one built at once", i)
}

// Whatever was done before or since, and from whichever version it was done,
// each version holds what a Go map would.
func TestEveryVersionEqualsItsModel(t *testing.T) {
	for i := range masks {
		t.Run(fmt.Sprintf("mask=%#x", masks[i]), func(t *testing.T) {
			for n := range uint64(20) {
				p := randomProgram(*firstSeed+n, byte(i))
				if !t.Run(fmt.Sprint("seed=", *firstSeed+n), p.run) {
					return
				}
			}
		})
	}
}

var firstSeed = flag.Uint64("trie.seed", rand.Uint64(), "seed of the first random program; a failing test has it in its name")

func randomProgram(seed uint64, hash byte) program {
	r := rand.New(rand.NewPCG(seed, 0))
	p := program{hash}
	// Few keys make for many deletes that find something; many, for large maps.
	keys := []int{4, 20, 256}[r.IntN(3)]
	for range 400 {
		p = append(p, byte(r.IntN(256)), byte(r.IntN(keys)))
	}
	return p
}

func TestEmptyMap(t *testing.T) {
	var m Map[int]
	assert.Zero(t, m.Len())
	_, ok := m.Get("")
	assert.False(t, ok)
	assert.Empty(t, maps.Collect(m.All()))

	e := m.Edit()
	assert.False(t, e.Delete(""))
	e.Set("", 1)
	assert.Equal(t, map[string]int{"": 1}, maps.Collect(e.Map().All()))
	assert.True(t, e.Delete(""))
	assert.Equal(t, Map[int]{edition: 2}, e.Map(), "nothing is left")
}

func TestEach(t *testing.T) {
	var m Map[int]
	assert.True(t, m.Each(func(string, int) bool { return false }), "nothing to stop at")

	e := m.Edit()
	for i := range 100 {
		e.Set(strconv.Itoa(i), i)
	}
	m = e.Map()
	seen := map[string]int{}
	assert.True(t, m.Each(func(key string, value int) bool {
		seen[key] = value
		return true
	}))
	assert.Equal(t, maps.Collect(m.All()), seen)

	calls := 0
	assert.False(t, m.Each(func(string, int) bool {
		calls++
		return calls < 7
	}))
	assert.Equal(t, 7, calls)
}
