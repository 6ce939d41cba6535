package safestore

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// What the writing side costs by itself, without a watch. The benchmarks beside
// other caches are in test/bench.

func benchMaps(n int) []*Map {
	maps := make([]*Map, n)
	for i := range maps {
		maps[i] = mapOf(fmt.Sprintf("team-%04d", i/100), fmt.Sprintf("map-%05d", i), strconv.Itoa(i+1))
		maps[i].Labels = map[string]string{"app": fmt.Sprintf("app-%02d", i%100), "node": fmt.Sprintf("node-%04d", i%997)}
	}
	return maps
}

func BenchmarkWriter(b *testing.B) {
	for _, indexed := range []int{0, 2} {
		b.Run(fmt.Sprint("indexes=", indexed), func(b *testing.B) {
			const n = 100_000
			r := newRig(b)
			for _, label := range []string{"app", "node"}[:indexed] {
				require.NoError(b, WithLabelIndex[*Map](label)(r.store))
			}
			maps := benchMaps(n)
			r.publishSet(b, strconv.Itoa(n), maps...)
			place, version := 0, n

			b.Run("apply", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					place, version = (place+7919)%n, version+1
					obj := *maps[place]
					obj.ResourceVersion = strconv.Itoa(version)
					require.NoError(b, r.Apply(watch.Modified, &obj))
				}
			})
			b.Run("build", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r.publishSet(b, strconv.Itoa(version), maps...)
				}
			})
		})
	}
}

func BenchmarkList(b *testing.B) {
	r := newRig(b)
	require.NoError(b, WithLabelIndex[*Map]("node")(r.store))
	r.store.current.Store(r.store.noSet()) // one that knows the index
	r.publishSet(b, "100000", benchMaps(100_000)...)
	snapshot := r.store.current.Load()
	for name, opts := range map[string][]ListOption{
		"all":       nil,
		"namespace": {InNamespace("team-0042")},
		"index":     {ByIndex("node", "node-0042")},
		"label":     {MatchingLabels(map[string]string{"app": "app-42"})},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := snapshot.List(opts...)
				require.NoError(b, err)
			}
		})
	}
}
