package safestore

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// Namespaces is several namespaces as one logical store, for programs that may read
// these and no others: a store each, with readiness together, that is read, waited
// for and followed as a [Store] is. Namespaces come and go with Add and Remove. Make
// one with [NewNamespaces]; all its methods may be called from any goroutine.
//
// What is read of one namespace waits only for that one; what is read of all of them
// needs all to be ready. So one that is not, for example because the right to it was
// withdrawn, does not keep the others from being read. Who follows the changes of all
// hears nothing meanwhile: whoever would rather follow some subscribes to the Store
// of each.
//
// When a namespace is removed its objects are no longer covered: subscribers are told
// that they are Deleted, and reading them is an error. When it is added again, they
// are Added.
type Namespaces[T Object] struct {
	*StoreSet[T]
	joined        joined[T]
	subscriptions subscriptions[T]
}

// NewNamespaces returns a store of the objects that source lists and watches in
// each of the namespaces, not yet running. The options are those of each store;
// each is called by Options.Name, or the type, with its namespace. There may be no
// namespaces to begin with: see [NewStoreSet].
//
// It fails as [New] does, for a namespace that is named twice, and for an empty one,
// which would be all of them.
func NewNamespaces[T Object](
	source func(namespace string) watcher.Source, namespaces []string, opts Options, typed ...Option[T],
) (*Namespaces[T], error) {
	if source == nil {
		return nil, errors.New("safestore: NewNamespaces without a source")
	}
	name := opts.Name
	if name == "" {
		name = typeName[T]()
	}
	set, err := NewStoreSet(name, func(namespace string) (*Store[T], error) {
		one := opts
		one.Name = name + " in " + namespace
		return New(source(namespace), one, typed...)
	}, namespaces...)
	if err != nil {
		return nil, err
	}
	return &Namespaces[T]{StoreSet: set}, nil
}

// Get returns the object of that key as [Store.Get] does, waiting only for its own
// namespace. That the namespace is none of these is an error, not a NotFound.
func (n *Namespaces[T]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	s, err := n.storeOf(key)
	if err != nil {
		var none T
		return none, err
	}
	return s.Get(ctx, key)
}

// GetDeepCopy is Get with a copy that is the caller's to change.
func (n *Namespaces[T]) GetDeepCopy(ctx context.Context, key types.NamespacedName) (T, error) {
	return deepCopy(n.Get(ctx, key))
}

// List returns the objects that match all options, as [Store.List] does. With
// [InNamespace] it waits only for that namespace; otherwise all of them must be
// ready.
func (n *Namespaces[T]) List(ctx context.Context, opts ...ListOption) ([]T, error) {
	if namespace := queryOf(opts).namespace; namespace != "" {
		s, err := n.storeOf(types.NamespacedName{Namespace: namespace})
		if err != nil {
			return nil, err
		}
		return s.List(ctx, opts...)
	}
	snapshot, err := n.WaitSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	return snapshot.List(opts...)
}

// Subscribe returns a subscription to the changes in all namespaces, as
// [Store.Subscribe] does. Its generations are those of all namespaces together. A
// loop over it ends at once, with an error, if it is for a namespace that is none of
// these.
func (n *Namespaces[T]) Subscribe(name string, opts ...ListOption) *Subscription[T] {
	return subscribe[T](n, name, opts)
}

// WaitFor waits until reads reflect the given object, as [Store.WaitFor] does.
func (n *Namespaces[T]) WaitFor(ctx context.Context, obj metav1.Object) error {
	s, err := n.storeOf(Key(obj))
	if err != nil {
		return err
	}
	return s.WaitFor(ctx, obj)
}

// WaitForVersion waits until reads of all namespaces reflect a resource version of
// the collection, as [Store.WaitForVersion] does.
func (n *Namespaces[T]) WaitForVersion(ctx context.Context, version string) error {
	return n.each(func(s *Store[T]) error { return s.WaitForVersion(ctx, version) })
}

// WaitForDeletion waits until reads no longer return the given object, as
// [Store.WaitForDeletion] does.
func (n *Namespaces[T]) WaitForDeletion(ctx context.Context, obj metav1.Object) error {
	s, err := n.storeOf(Key(obj))
	if err != nil {
		return err
	}
	return s.WaitForDeletion(ctx, obj)
}

// storeOf returns the store that a key belongs to.
func (n *Namespaces[T]) storeOf(key types.NamespacedName) (*Store[T], error) {
	members := n.members.Load()
	if err := members.scope.covers(key); err != nil {
		return nil, err
	}
	return members.stores[key.Namespace], nil
}

// Status returns the status of all namespaces together: that of a group, and the
// subscriptions to all of them.
func (n *Namespaces[T]) Status() Status {
	status := n.group.Status()
	status.Subscriptions = n.subscriptions.status()
	return status
}

// Stale returns the last snapshots of all namespaces as one, current or not, and how
// old the oldest may be, as [Store.Stale] does. It returns nil if that of any
// namespace does.
func (n *Namespaces[T]) Stale() (*Snapshot[T], time.Duration) {
	members := n.members.Load()
	var parts []*Snapshot[T]
	for _, name := range members.names {
		part, _ := members.stores[name].Stale()
		if part == nil {
			return nil, 0
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, 0
	}
	all := joinParts(n.Token(), members, members.scope, parts)
	return all, all.Age()
}
