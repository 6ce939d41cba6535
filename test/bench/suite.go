package bench

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// Suite is the pods, and the caches that hold them to be read, made when they are
// first wanted: what is not needed yet is no burden to the garbage collector.
// Caches that are written to are made for each measurement.
type Suite struct {
	pods    []*corev1.Pod
	keys    []key // of all pods
	missing []key // of pods that do not exist, in namespaces that do

	structures func() (*structures, error)
	store      func() (*podStore, error)
	informer   func() (cache.SharedIndexInformer, error)
	reader     func() (client.Reader, error)

	runs []*running
}

// New makes size pods, at least a thousand. The caches that hold them run until
// Close.
func New(ctx context.Context, size int) (*Suite, error) {
	if size < 1000 {
		return nil, errors.New("fewer than 1000 pods show nothing")
	}
	s := &Suite{pods: makePods(size)}
	s.keys = keysOf(s.pods)
	for _, k := range s.keys {
		s.missing = append(s.missing, newKey(k.name.Namespace, k.name.Name+"-x"))
	}
	s.structures = sync.OnceValues(func() (*structures, error) { return newStructures(s.pods), nil })
	s.store = sync.OnceValues(func() (*podStore, error) {
		store, r, err := startStore(ctx, newFeed(s.pods), safestore.Options{}, twoIndexes()...)
		return store, s.keep(r, err)
	})
	s.informer = sync.OnceValues(func() (cache.SharedIndexInformer, error) {
		informer, r, err := startInformer(ctx, newFeed(s.pods), namespaceAndTwoIndexes())
		return informer, s.keep(r, err)
	})
	s.reader = sync.OnceValues(func() (client.Reader, error) {
		reader, r, err := startReader(ctx, newFeed(s.pods))
		return reader, s.keep(r, err)
	})
	return s, nil
}

// snapshot, lister and indexer are what a program keeps at hand to read with.

func (s *Suite) snapshot() (*podSnapshot, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	return store.Snapshot()
}

func (s *Suite) lister() (corelisters.PodLister, error) {
	informer, err := s.informer()
	if err != nil {
		return nil, err
	}
	return podLister(informer), nil
}

func (s *Suite) indexer() (cache.Indexer, error) {
	informer, err := s.informer()
	if err != nil {
		return nil, err
	}
	return informer.GetIndexer(), nil
}

func (s *Suite) keep(r *running, err error) error {
	if err == nil {
		s.runs = append(s.runs, r)
	}
	return err
}

// Close stops all caches.
func (s *Suite) Close() {
	for _, r := range s.runs {
		r.stop()
	}
}

// Operations returns all that is measured: what is about memory, or lists anew,
// before the caches that stay.
func (s *Suite) Operations() []Operation {
	return []Operation{
		s.relistHeap(), s.relist(), s.apply(), s.applyIndexed(),
		s.memory(), s.versions(), s.update(), s.replace(),
		s.get(), s.getMissing(), s.listNamespace(), s.listByIndex(), s.listByLabel(),
	}
}

// each returns a contender that opens a cache and calls f for each item in turn,
// over and over.
func each[C, I any](name string, open func() (C, error), items []I, f func(C, *I) error) Contender {
	return Contender{Name: name, run: func(b *testing.B) error {
		cache, err := open()
		if err != nil {
			return err
		}
		i := 0
		for b.Loop() {
			if err := f(cache, &items[i]); err != nil {
				return err
			}
			if i++; i == len(items) {
				i = 0
			}
		}
		return nil
	}}
}
