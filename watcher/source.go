package watcher

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source is what a Watcher lists and watches. Its methods must honour their
// context (C44). [ListWatch] makes one from a client; client-go's
// cache.ListWatch is one; for any other cache.ListerWatcher there is
// cache.ToListerWatcherWithContext.
type Source = cache.ListerWatcherWithContext

// Client is the part of a typed, dynamic or metadata client that a Source needs,
// for example client.CoreV1().Pods("") or dynamicClient.Resource(gvr).
type Client[L runtime.Object] interface {
	// List returns the objects that opts select.
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	// Watch opens a watch of the objects that opts select.
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// ListWatch returns a Source over a client. The client's namespace is the
// Source's namespace. Each modify function is applied to the options of every
// request: see [WithLabelSelector] and [WithFieldSelector]. It must not touch what
// the protocol needs (resource versions, limits, bookmarks). It returns nil if
// client is nil, which [New] refuses.
func ListWatch[L runtime.Object](client Client[L], modify ...func(*metav1.ListOptions)) Source {
	if isNil(client) {
		return nil
	}
	return &clientSource[L]{client: client, modify: modify}
}

type clientSource[L runtime.Object] struct {
	client Client[L]
	modify []func(*metav1.ListOptions)
}

func (s *clientSource[L]) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	s.apply(&opts)
	list, err := s.client.List(ctx, opts)
	if err != nil {
		// Not the typed nil that some clients return beside an error.
		return nil, err
	}
	return list, nil
}

func (s *clientSource[L]) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.apply(&opts)
	return s.client.Watch(ctx, opts)
}

func (s *clientSource[L]) apply(opts *metav1.ListOptions) {
	for _, f := range s.modify {
		f(opts)
	}
}
