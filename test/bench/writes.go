package bench

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// update is what one event costs the structures. All but the last three leave the
// version before it as it was.
func (s *Suite) update() Operation {
	type update struct {
		key
		pod *corev1.Pod
	}
	var updates []update // in random order
	pods := mapOf(s.pods)
	for _, k := range s.keys {
		updates = append(updates, update{k, pods[k.name]})
	}
	each := func(name string, f func(*structures, *update)) Contender {
		return each(name, s.structures, updates, func(p *structures, u *update) error {
			f(p, u)
			return nil
		})
	}
	return Operation{Name: "update one", Units: []string{nsPerOp}, Contenders: []Contender{
		each("structure: our trie", func(p *structures, u *update) { p.trie.Store(trieWith(p.trie.Load(), u.pod)) }),
		each("structure: statedb part", func(p *structures, u *update) { p.part.Store(partWith(p.part.Load(), u.bytes, u.pod)) }),
		each("structure: immutable", func(p *structures, u *update) { p.immutable.Store(p.immutable.Load().Set(u.path, u.pod)) }),
		each("structure: Go map, RWMutex", func(p *structures, u *update) { p.locked.set(u.name, u.pod) }),
		each("structure: sync.Map", func(p *structures, u *update) { p.sync.Store(u.path, u.pod) }),
		each("client-go Indexer", func(p *structures, u *update) { _ = p.indexer.Update(u.pod) }),
	}}
}

// replace is what a whole new set costs the structures. Readers of client-go's
// indexer wait for most of that time, under its lock; those of the others do not.
func (s *Suite) replace() Operation {
	each := func(name string, f func(*structures, []*corev1.Pod)) Contender {
		return each(name, s.structures, [][]*corev1.Pod{s.pods}, func(p *structures, pods *[]*corev1.Pod) error {
			f(p, *pods)
			return nil
		})
	}
	return Operation{Name: "replace all", Units: []string{nsPerOp}, Contenders: []Contender{
		each("structure: our trie", func(p *structures, pods []*corev1.Pod) { p.trie.Store(trieOf(pods)) }),
		each("structure: statedb part", func(p *structures, pods []*corev1.Pod) { p.part.Store(partOf(pods)) }),
		each("structure: immutable", func(p *structures, pods []*corev1.Pod) { p.immutable.Store(immutableOf(pods)) }),
		each("structure: Go map", func(_ *structures, pods []*corev1.Pod) { mapOf(pods) }),
		each("structure: sync.Map", func(_ *structures, pods []*corev1.Pod) { syncMapOf(pods) }),
		each("client-go Indexer", func(p *structures, pods []*corev1.Pod) { replaceAll(p.indexer, pods) }),
	}}
}

const nsPerEvent = "ns/event"

// apply is what an event costs from the watch to the read.
func (s *Suite) apply() Operation {
	return Operation{Name: "apply an event", Units: []string{nsPerEvent}, Contenders: []Contender{
		{Name: "SafeStore", run: func(b *testing.B) error { return s.applyToStore(b) }},
		{Name: "client-go informer", run: func(b *testing.B) error { return s.applyToInformer(b, namespaceIndex()) }},
	}}
}

func (s *Suite) applyIndexed() Operation {
	return Operation{Name: "apply an event, with two indexes", Units: []string{nsPerEvent}, Contenders: []Contender{
		{Name: "SafeStore", run: func(b *testing.B) error { return s.applyToStore(b, twoIndexes()...) }},
		{Name: "client-go informer", run: func(b *testing.B) error { return s.applyToInformer(b, namespaceAndTwoIndexes()) }},
	}}
}

func (s *Suite) applyToStore(b *testing.B, indexes ...podIndex) error {
	f := newFeed(s.pods)
	store, r, err := startStore(b.Context(), f, safestore.Options{}, indexes...)
	if err != nil {
		return err
	}
	defer r.stop()
	return applyEvents(b, f, versionInStore(store))
}

func (s *Suite) applyToInformer(b *testing.B, indexers cache.Indexers) error {
	f := newFeed(s.pods)
	informer, r, err := startInformer(b.Context(), f, indexers)
	if err != nil {
		return err
	}
	defer r.stop()
	return applyEvents(b, f, versionInIndexer(informer.GetIndexer()))
}

// applyEvents sends bursts of events, and waits for the last of each to be read.
func applyEvents(b *testing.B, f *feed, version versionOf) error {
	const burst = 1000
	place, events := 0, 0
	for b.Loop() {
		for range burst {
			place = (place + 7919) % len(f.pods) // each in another namespace
			pod, err := f.update(b.Context(), place)
			if err != nil {
				return err
			}
			if events++; events%burst == 0 {
				if err := waitFor(b.Context(), pod, version); err != nil {
					return err
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), nsPerEvent)
	return nil
}

// versionOf returns the resource version of a pod as a cache has it.
type versionOf func(types.NamespacedName) string

func versionInStore(store *podStore) versionOf {
	return func(k types.NamespacedName) string {
		snapshot, _ := store.Stale() // also while a relist keeps others waiting
		pod, err := snapshot.Get(k)
		if err != nil {
			return ""
		}
		return pod.ResourceVersion
	}
}

func versionInIndexer(indexer cache.Indexer) versionOf {
	return func(k types.NamespacedName) string {
		obj, ok, _ := indexer.GetByKey(k.String())
		if !ok {
			return ""
		}
		return obj.(*corev1.Pod).ResourceVersion
	}
}

// waitFor waits until a cache has a pod in that state or a later one.
func waitFor(ctx context.Context, pod *corev1.Pod, version versionOf) error {
	k := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	want, err := strconv.Atoi(pod.ResourceVersion)
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Microsecond)
	defer tick.Stop()
	for end := time.Now().Add(syncLimit); time.Now().Before(end); {
		if got, err := strconv.Atoi(version(k)); err == nil && got >= want {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s at version %d has not arrived", k, want)
}
