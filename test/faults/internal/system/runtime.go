package system

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runtimeCache is controller-runtime's cache.
type runtimeCache struct {
	cache.Cache
	namespace string
	informer  cache.Informer
	list      func() client.ObjectList
}

func newRuntime(setup *Setup, config *rest.Config, c *consumer) (underTest, error) {
	gvk := setup.Resource.GroupVersion().WithKind(setup.ObjectKind)
	// What the server serves is known: to be asked for it is no part of the test.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gvk.GroupVersion()})
	mapper.AddSpecific(gvk, setup.Resource, setup.Resource, meta.RESTScopeNamespace)
	mapper.Add(gvk.GroupVersion().WithKind(gvk.Kind+"List"), meta.RESTScopeNamespace)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	r := &runtimeCache{namespace: setup.Namespace}
	r.Cache, err = cache.New(config, cache.Options{
		HTTPClient:                  httpClient,
		Scheme:                      scheme.Scheme,
		Mapper:                      mapper,
		DefaultNamespaces:           map[string]cache.Config{setup.Namespace: {}},
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, err
	}
	var example client.Object = &corev1.ConfigMap{}
	r.list = func() client.ObjectList { return &corev1.ConfigMapList{} }
	if !setup.typed() {
		r.list = func() client.ObjectList {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			return list
		}
		untyped := &unstructured.Unstructured{}
		untyped.SetGroupVersionKind(gvk)
		example = untyped
	}
	if r.informer, err = r.GetInformer(context.Background(), example, cache.BlockUntilSynced(false)); err != nil {
		return nil, err
	}
	_, err = r.informer.AddEventHandler(handler(c))
	return r, err
}

func (r *runtimeCache) run(ctx context.Context) error { return r.Start(ctx) }

// stir implements underTest: events come all the time.
func (r *runtimeCache) stir() {}

func (r *runtimeCache) read(s *Sample) {
	if !r.informer.HasSynced() {
		s.Reason = "NotSynced" // List would wait
		return
	}
	list := r.list()
	if err := r.List(context.Background(), list, client.InNamespace(r.namespace), client.UnsafeDisableDeepCopy); err != nil {
		s.Reason, s.Error = "Error", err.Error()
		return
	}
	s.Good = true
	switch list := list.(type) {
	case *corev1.ConfigMapList:
		for i := range list.Items {
			s.State.Add(&list.Items[i])
		}
	case *unstructured.UnstructuredList:
		for i := range list.Items {
			s.State.Add(&list.Items[i])
		}
	}
}
