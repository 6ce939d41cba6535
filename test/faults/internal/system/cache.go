package system

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// underTest is a cache.
type underTest interface {
	// run runs the cache until ctx ends, and returns when it has ended.
	run(ctx context.Context) error
	// read fills in the answer of the cache, without waiting.
	read(s *Sample)
	// stir makes the cache tell its consumers something.
	stir()
}

// newCache makes the cache that is asked for.
func newCache(setup *Setup, config *rest.Config, requests *counter, consumer *consumer) (underTest, error) {
	switch setup.Kind {
	case SafeStore:
		return newSafeStore(setup, config, requests, consumer)
	case Informer:
		return newInformer(setup, config, consumer)
	case Runtime:
		return newRuntime(setup, config, consumer)
	}
	return nil, fmt.Errorf("unknown kind of cache: %q", setup.Kind)
}

// clients returns the clients of client-go that caches are made over.
func clients(config *rest.Config) (kubernetes.Interface, dynamic.Interface, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	typed, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, nil, err
	}
	untyped, err := dynamic.NewForConfigAndClient(config, httpClient)
	return typed, untyped, err
}
