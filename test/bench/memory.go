package bench

import (
	"maps"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const (
	bytesPerObject = "B/object"
	bytesPerUpdate = "B/update"
)

// memory is what a structure needs for each pod that it holds, besides the pod.
func (s *Suite) memory() Operation {
	holds := func(name string, build func() any) Contender {
		return Contender{Name: name, run: func(b *testing.B) error {
			var taken float64
			for b.Loop() {
				taken = heapOf(build)
			}
			b.ReportMetric(taken/float64(len(s.pods)), bytesPerObject)
			return nil
		}}
	}
	return Operation{Name: "memory to hold all", Units: []string{bytesPerObject}, Contenders: []Contender{
		holds("structure: our trie", func() any { return trieOf(s.pods) }),
		holds("structure: statedb part", func() any { return partOf(s.pods) }),
		holds("structure: immutable", func() any { return immutableOf(s.pods) }),
		holds("structure: Go map", func() any { return mapOf(s.pods) }),
		holds("structure: sync.Map", func() any { return syncMapOf(s.pods) }),
		holds("client-go Indexer", func() any { return indexerOf(s.pods) }),
	}}
}

// versions is what it costs to keep a version while the next one, some updates
// later, is made. Where there are no versions, one has to be copied.
func (s *Suite) versions() Operation {
	updates := make([]*corev1.Pod, 1000)
	for i := range updates {
		place := i * 7919 % len(s.pods)
		updates[i] = changed(s.pods[place], uint64(len(s.pods)+i+1))
	}
	costs := func(name string, update func(first *structures) any) Contender {
		return Contender{Name: name, run: func(b *testing.B) error {
			first := newStructures(s.pods) // its own: part wants each version to follow from the last one
			var taken float64
			for b.Loop() {
				taken = heapOf(func() any { return update(first) })
			}
			b.ReportMetric(taken/float64(len(updates)), bytesPerUpdate)
			return nil
		}}
	}
	return Operation{Name: "memory of a second version, 1000 updates later", Units: []string{bytesPerUpdate}, Contenders: []Contender{
		costs("structure: our trie", func(first *structures) any {
			next := first.trie.Load()
			for _, pod := range updates {
				next = trieWith(next, pod)
			}
			return next
		}),
		costs("structure: statedb part", func(first *structures) any {
			next := first.part.Load()
			for _, pod := range updates {
				next = partWith(next, []byte(pathOf(pod)), pod)
			}
			return next
		}),
		costs("structure: immutable", func(first *structures) any {
			next := first.immutable.Load()
			for _, pod := range updates {
				next = next.Set(pathOf(pod), pod)
			}
			return next
		}),
		costs("structure: Go map, copied", func(first *structures) any { return maps.Clone(first.locked.pods) }),
		costs("client-go Indexer.List", func(first *structures) any { return first.indexer.List() }),
	}}
}

// heapOf returns how much memory what f returns holds.
func heapOf(f func() any) float64 {
	before := liveHeap()
	kept := f()
	after := liveHeap()
	runtime.KeepAlive(kept)
	return float64(after) - float64(before)
}

// liveHeap returns the memory that is reachable.
func liveHeap() uint64 {
	// What a sync.Pool holds goes with the second collection.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
