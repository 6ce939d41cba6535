package system

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informer is a SharedIndexInformer of client-go.
type informer struct{ cache.SharedIndexInformer }

func newInformer(setup *Setup, config *rest.Config, c *consumer) (underTest, error) {
	typed, untyped, err := clients(config)
	if err != nil {
		return nil, err
	}
	var example runtime.Object = &corev1.ConfigMap{}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return typed.CoreV1().ConfigMaps(setup.Namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return typed.CoreV1().ConfigMaps(setup.Namespace).Watch(ctx, o)
		},
	}
	if !setup.typed() {
		example = &unstructured.Unstructured{}
		resource := untyped.Resource(setup.Resource).Namespace(setup.Namespace)
		source = &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return resource.List(ctx, o)
			},
			WatchFuncWithContext: resource.Watch,
		}
	}
	i := cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{})
	_, err = i.AddEventHandler(handler(c))
	return &informer{i}, err
}

// handler tells a consumer of events.
func handler(c *consumer) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.handle() },
		UpdateFunc: func(any, any) { c.handle() },
		DeleteFunc: func(any) { c.handle() },
	}
}

func (i *informer) run(ctx context.Context) error {
	i.RunWithContext(ctx)
	return nil
}

// stir implements underTest: events come all the time.
func (i *informer) stir() {}

func (i *informer) read(s *Sample) {
	if !i.HasSynced() {
		s.Reason = "NotSynced"
		return
	}
	s.Good = true
	for _, obj := range i.GetIndexer().List() {
		if m, err := meta.Accessor(obj); err == nil {
			s.State.Add(m)
		}
	}
}
