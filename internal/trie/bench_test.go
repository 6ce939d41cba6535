package trie

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

type object struct{ _ int64 }

// benchKeys returns keys that look like the names of pods, in random order,
// half of them to be in a map and half of them not.
func benchKeys(size int) (in, out []string) {
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([]string, 2*size)
	for i := range keys {
		keys[i] = fmt.Sprintf("web-%08x-%05x", r.Uint32(), i)
	}
	return keys[:size:size], keys[size:]
}

// again returns the keys in another order and other memory: who asks for a key
// rarely has the very string that the map holds.
func again(keys []string) []string {
	out := make([]string, len(keys))
	for i, j := range rand.New(rand.NewPCG(3, 4)).Perm(len(keys)) {
		out[i] = strings.Clone(keys[j])
	}
	return out
}

func build(keys []string) Map[*object] {
	e := Map[*object]{}.Edit()
	for _, key := range keys {
		e.Set(key, nil)
	}
	return e.Map()
}

func buildGo(keys []string) map[string]*object {
	m := map[string]*object{}
	for _, key := range keys {
		m[key] = nil
	}
	return m
}

// loop calls f for each key in turn, over and over.
func loop(b *testing.B, keys []string, f func(key string)) {
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f(keys[i])
		if i++; i == len(keys) {
			i = 0
		}
	}
}

func BenchmarkMap(b *testing.B) {
	for _, size := range []int{1000, 100_000} {
		b.Run(fmt.Sprint("size=", size), func(b *testing.B) {
			keys, others := benchKeys(size)
			known, unknown := again(keys), again(others)
			m, value := build(keys), &object{}

			b.Run("get=hit", func(b *testing.B) { loop(b, known, func(key string) { m.Get(key) }) })
			b.Run("get=miss", func(b *testing.B) { loop(b, unknown, func(key string) { m.Get(key) }) })
			b.Run("set=replace", func(b *testing.B) {
				loop(b, known, func(key string) {
					e := m.Edit()
					e.Set(key, value)
					m = e.Map()
				})
			})
			b.Run("set=add", func(b *testing.B) {
				loop(b, unknown, func(key string) {
					e := m.Edit()
					e.Set(key, value)
					e.Map()
				})
			})
			b.Run("delete", func(b *testing.B) {
				loop(b, known, func(key string) {
					e := m.Edit()
					e.Delete(key)
					e.Map()
				})
			})
			b.Run("all", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for range m.All() {
					}
				}
			})
			b.Run("build", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					build(keys)
				}
				b.ReportMetric(bytesPerKey(size, func() any { return build(keys) }), "B/key")
			})
		})
	}
}

// BenchmarkGoMap is what to compare with. A new version of a Go map is a copy.
func BenchmarkGoMap(b *testing.B) {
	for _, size := range []int{1000, 100_000} {
		b.Run(fmt.Sprint("size=", size), func(b *testing.B) {
			keys, others := benchKeys(size)
			known, unknown := again(keys), again(others)
			m, value := buildGo(keys), &object{}

			b.Run("get=hit", func(b *testing.B) { loop(b, known, func(key string) { _ = m[key] }) })
			b.Run("get=miss", func(b *testing.B) { loop(b, unknown, func(key string) { _ = m[key] }) })
			b.Run("set=replace", func(b *testing.B) {
				loop(b, known, func(key string) {
					m = maps.Clone(m)
					m[key] = value
				})
			})
			b.Run("all", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for range m {
					}
				}
			})
			b.Run("build", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					buildGo(keys)
				}
				b.ReportMetric(bytesPerKey(size, func() any { return buildGo(keys) }), "B/key")
			})
		})
	}
}

// bytesPerKey returns the memory that what f returns takes for each of size keys.
func bytesPerKey(size int, f func() any) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / float64(size)
}
