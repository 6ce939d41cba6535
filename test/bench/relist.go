package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// The relists here find one pod changed, the last one: it tells when they are
// over. Decoding is left out, but each brings objects of its own.

const (
	msPerRelist   = "ms/relist"
	msLongestRead = "ms-longest-read"
	heapToSteady  = "heap/steady-heap"
)

// relist is how long a relist takes, from the LIST to the last object read, and
// how long the slowest read took meanwhile. Both caches serve the old set until
// they have the new one: SafeStore only does with GaplessRelist.
func (s *Suite) relist() Operation {
	return Operation{Name: "relist, and read meanwhile", Units: []string{msPerRelist, msLongestRead}, Contenders: []Contender{
		{Name: "SafeStore, gapless", run: func(b *testing.B) error {
			return s.relistStore(b, s.pods, func(f *feed, version versionOf, get getter) error {
				return relistAndRead(b, f, version, get, s.keys)
			})
		}},
		{Name: "client-go informer", run: func(b *testing.B) error {
			return s.relistInformer(b, s.pods, func(f *feed, version versionOf, get getter) error {
				return relistAndRead(b, f, version, get, s.keys)
			})
		}},
	}}
}

// relistHeap is the memory that is reachable near the end of a relist, relative to
// when all is quiet (C42), with 10,000 pods at most.
func (s *Suite) relistHeap() Operation {
	pods := s.pods[:min(len(s.pods), 10_000)]
	return Operation{Name: "memory during a relist", Units: []string{heapToSteady}, Contenders: []Contender{
		{Name: "SafeStore", run: func(b *testing.B) error {
			before := liveHeap()
			return s.relistStore(b, pods, func(f *feed, version versionOf, _ getter) error {
				return relistAndWeigh(b, f, version, before)
			})
		}},
		{Name: "client-go informer", run: func(b *testing.B) error {
			before := liveHeap()
			return s.relistInformer(b, pods, func(f *feed, version versionOf, _ getter) error {
				return relistAndWeigh(b, f, version, before)
			})
		}},
	}}
}

// getter reads one pod.
type getter func(*key) error

func (s *Suite) relistStore(b *testing.B, pods []*corev1.Pod, measure func(*feed, versionOf, getter) error) error {
	f := newFeed(pods)
	f.decodes = true
	store, r, err := startStore(b.Context(), f, safestore.Options{GaplessRelist: true})
	if err != nil {
		return err
	}
	defer r.stop()
	return measure(f, versionInStore(store), func(k *key) error {
		_, err := store.Get(b.Context(), k.name)
		return err
	})
}

func (s *Suite) relistInformer(b *testing.B, pods []*corev1.Pod, measure func(*feed, versionOf, getter) error) error {
	f := newFeed(pods)
	f.decodes = true
	informer, r, err := startInformer(b.Context(), f, namespaceIndex())
	if err != nil {
		return err
	}
	defer r.stop()
	lister := podLister(informer)
	return measure(f, versionInIndexer(informer.GetIndexer()), func(k *key) error {
		_, err := lister.Pods(k.name.Namespace).Get(k.name.Name)
		return err
	})
}

// relistOnce makes the cache list again, and waits until it has.
func relistOnce(ctx context.Context, f *feed, version versionOf) error {
	pod := f.change(len(f.pods) - 1)
	if err := f.expire(ctx); err != nil {
		return err
	}
	return waitFor(ctx, pod, version)
}

func relistAndRead(b *testing.B, f *feed, version versionOf, get getter, keys []key) error {
	var took, longest time.Duration
	relists := 0
	for b.Loop() {
		read := readMeanwhile(get, keys)
		err := relistOnce(b.Context(), f, version)
		took += time.Since(f.listBegan())
		slowest, readErr := read()
		if err := errors.Join(err, readErr); err != nil {
			return err
		}
		longest += slowest
		relists++
	}
	b.ReportMetric(took.Seconds()*1e3/float64(relists), msPerRelist)
	b.ReportMetric(longest.Seconds()*1e3/float64(relists), msLongestRead)
	return nil
}

// readMeanwhile reads until the returned function is called, which returns how
// long the slowest read took.
func readMeanwhile(get getter, keys []key) (end func() (time.Duration, error)) {
	var (
		over    atomic.Bool
		slowest time.Duration
		err     error
		group   sync.WaitGroup
	)
	group.Go(func() {
		for i := 0; err == nil && !over.Load(); i++ {
			start := time.Now()
			err = get(&keys[i%len(keys)])
			slowest = max(slowest, time.Since(start))
		}
	})
	return func() (time.Duration, error) {
		over.Store(true)
		group.Wait()
		return slowest, err
	}
}

// relistAndWeigh looks when the last page is asked for: the next set is nearly
// whole, the one before is still there, and nobody allocates while it looks.
func relistAndWeigh(b *testing.B, f *feed, version versionOf, before uint64) error {
	steady := liveHeap() - before
	var during uint64
	f.mu.Lock()
	f.onLast = func() { during = liveHeap() - before }
	f.mu.Unlock()
	for b.Loop() {
		if err := relistOnce(b.Context(), f, version); err != nil {
			return err
		}
	}
	b.ReportMetric(float64(during)/float64(steady), heapToSteady)
	return nil
}
