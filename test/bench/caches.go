package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kube-safestore/kube-safestore/safestore"
)

type (
	podStore    = safestore.Store[*corev1.Pod]
	podSnapshot = safestore.Snapshot[*corev1.Pod]
	podIndex    = safestore.Option[*corev1.Pod]
)

// running is what runs until it is stopped.
type running struct {
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
}

func run(ctx context.Context, f func(context.Context)) *running {
	r := &running{}
	r.ctx, r.cancel = context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	r.group.Go(func() { f(r.ctx) })
	return r
}

func (r *running) stop() {
	r.cancel()
	r.group.Wait()
}

// syncLimit is how long a cache may take to be filled.
const syncLimit = time.Minute

// startStore returns a store with the pods of a feed in it.
func startStore(ctx context.Context, f *feed, opts safestore.Options, indexes ...podIndex) (*podStore, *running, error) {
	store, err := safestore.New(f, opts, indexes...)
	if err != nil {
		return nil, nil, err
	}
	r := run(ctx, func(ctx context.Context) { _ = store.Run(ctx) }) // it fails only when it is run twice
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	if _, err := store.WaitReady(ctx); err != nil {
		r.stop()
		return nil, nil, err
	}
	return store, r, nil
}

var errNotSynced = errors.New("the informer does not sync")

// startInformer returns a shared informer with the pods of a feed in it.
func startInformer(ctx context.Context, f *feed, indexers cache.Indexers) (cache.SharedIndexInformer, *running, error) {
	informer := cache.NewSharedIndexInformer(f, &corev1.Pod{}, 0, indexers)
	r := run(ctx, informer.RunWithContext)
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		r.stop()
		return nil, nil, errNotSynced
	}
	return informer, r, nil
}

// startReader returns a controller-runtime cache with the pods of a feed in it.
// Its informer lists and watches the feed in place of a server.
func startReader(ctx context.Context, f *feed) (client.Reader, *running, error) {
	crlog.SetLogger(logr.Discard()) // else it complains that none was set
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	reader, err := crcache.New(&rest.Config{}, crcache.Options{
		Scheme: scheme.Scheme,
		Mapper: mapper,
		NewInformer: func(_ cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(f, obj, resync, indexers)
		},
	})
	if err != nil {
		return nil, nil, err
	}
	err = reader.IndexField(ctx, &corev1.Pod{}, nodeIndex, func(obj client.Object) []string { return nodeOf(obj.(*corev1.Pod)) })
	if err != nil {
		return nil, nil, fmt.Errorf("index: %w", err)
	}
	r := run(ctx, func(ctx context.Context) { _ = reader.Start(ctx) })
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	if !reader.WaitForCacheSync(ctx) {
		r.stop()
		return nil, nil, errNotSynced
	}
	return reader, r, nil
}

// namespaceIndex is what informers have by themselves; twoIndexes are what they
// and stores have in addition where it says so.
func namespaceIndex() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

func namespaceAndTwoIndexes() cache.Indexers {
	indexers := namespaceIndex()
	indexers[nodeIndex] = func(obj any) ([]string, error) { return nodeOf(obj.(*corev1.Pod)), nil }
	indexers[imageIndex] = func(obj any) ([]string, error) { return imageOf(obj.(*corev1.Pod)), nil }
	return indexers
}

func twoIndexes() []podIndex {
	return []podIndex{safestore.WithIndex(nodeIndex, nodeOf), safestore.WithIndex(imageIndex, imageOf)}
}

// podLister is the generated lister, which programs read informers with.
func podLister(informer cache.SharedIndexInformer) corelisters.PodLister {
	return corelisters.NewPodLister(informer.GetIndexer())
}
