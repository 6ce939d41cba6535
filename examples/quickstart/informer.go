package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// informer is client-go's cache of the same objects, for comparison: the same
// user, the same watch timeout.
type informer struct {
	cache.SharedIndexInformer
	refused chan struct{} // closed when the server has answered 403
	stop    func()
	stopped chan struct{}
}

func startInformer(ctx context.Context, client kubernetes.Interface, namespace string) *informer {
	ctx, stop := context.WithCancel(ctx)
	seconds := int64(watchTimeout.Seconds())
	source := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", namespace,
		func(o *metav1.ListOptions) { o.TimeoutSeconds = &seconds })
	i := &informer{
		SharedIndexInformer: cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0, cache.Indexers{}),
		refused:             make(chan struct{}),
		stop:                stop,
		stopped:             make(chan struct{}),
	}
	refuse := sync.OnceFunc(func() { close(i.refused) })
	_ = i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { // fails only if it runs
		if apierrors.IsForbidden(err) {
			refuse()
		}
	})
	go func() {
		defer close(i.stopped)
		i.RunWithContext(ctx)
	}()
	return i
}

// answers returns what the informer says about objects now.
func (i *informer) answers(keys ...types.NamespacedName) string {
	lister := corev1listers.NewConfigMapLister(i.GetIndexer())
	return answers(func(key types.NamespacedName) (*corev1.ConfigMap, error) {
		return lister.ConfigMaps(key.Namespace).Get(key.Name)
	}, keys...)
}
