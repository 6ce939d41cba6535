package safestore

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// feed is what a subscription follows: a store, or namespaces as one.
type feed[T Object] interface {
	Name() string
	logger() klog.Logger
	// covers returns an error for a namespace of which it has nothing, whatever there
	// is. Empty is all of them.
	covers(namespace string) error
	// waitStarted reports whether it is driven, giving it a moment.
	waitStarted(ctx context.Context) bool
	// ready returns the current snapshot if it can be vouched for, and unready why
	// there is none. waited is why the reader no longer waits, nil if it did not.
	ready() (*Snapshot[T], bool)
	unready(waited error) error
	// changed returns a channel that is closed by the next change of what ready
	// returns, and end one that is closed when there will be none.
	changed() <-chan struct{}
	end() <-chan struct{}
	// loops are the subscriptions whose loops are running.
	loops() *subscriptions[T]
}

var (
	_ feed[Object] = (*Store[Object])(nil)
	_ feed[Object] = (*Namespaces[Object])(nil)
)

func (s *Store[T]) covers(namespace string) error {
	return s.scope.covers(types.NamespacedName{Namespace: namespace})
}

func (s *Store[T]) unready(waited error) error { return s.notReady(waited) }
func (s *Store[T]) changed() <-chan struct{}   { return s.progress.wait() }
func (s *Store[T]) end() <-chan struct{}       { return s.closed }
func (s *Store[T]) loops() *subscriptions[T]   { return &s.subscriptions }

func (n *Namespaces[T]) covers(namespace string) error {
	return n.members.Load().scope.covers(types.NamespacedName{Namespace: namespace})
}
func (n *Namespaces[T]) unready(waited error) error { return n.group.explain(waited) }
func (n *Namespaces[T]) changed() <-chan struct{}   { return n.moved.wait() }
func (n *Namespaces[T]) end() <-chan struct{}       { return n.group.closed }
func (n *Namespaces[T]) loops() *subscriptions[T]   { return &n.subscriptions }
