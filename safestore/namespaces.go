package safestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// Namespaces are several namespaces as one logical store, for programs that may
// read these and no others: a store each, in a [Group] whose readiness is theirs
// together. One namespace that is not ready, for example because the right to it
// was withdrawn, does not keep the others from being read. To follow what happens
// to the objects subscribe to each [Namespaces.Store].
type Namespaces[T Object] struct {
	Readiness // the group's
	group     *Group
	stores    map[string]*Store[T]
	order     []string // the names of the namespaces, sorted
}

// NewNamespaces returns a store of the objects that source lists and watches in
// each of the namespaces, not yet running. The options are those of each store;
// each is called by Options.Name, or the type, with its namespace.
//
// It fails as [New] does, without namespaces, and for an empty namespace, which
// would be all of them.
func NewNamespaces[T Object](source func(namespace string) watcher.Source, namespaces []string, opts Options, typed ...Option[T]) (*Namespaces[T], error) {
	switch {
	case source == nil:
		return nil, errors.New("safestore: NewNamespaces without a source")
	case len(namespaces) == 0:
		return nil, errors.New("safestore: NewNamespaces without namespaces")
	}
	name := opts.Name
	if name == "" {
		name = typeName[T]()
	}
	all := &Namespaces[T]{stores: map[string]*Store[T]{}}
	var members []Readiness
	for _, namespace := range slices.Sorted(slices.Values(namespaces)) {
		if namespace == "" {
			return nil, errors.New("safestore: NewNamespaces with an empty namespace")
		}
		one := opts
		one.Name = name + " in " + namespace
		s, err := New(source(namespace), one, typed...)
		if err != nil {
			return nil, err
		}
		all.stores[namespace] = s
		all.order = append(all.order, namespace)
		members = append(members, s)
	}
	group, err := NewGroup(name, members...)
	all.Readiness, all.group = group, group
	return all, err
}

// Run runs the stores of all namespaces until ctx ends. It returns what
// [Store.Run] does.
func (n *Namespaces[T]) Run(ctx context.Context) error {
	defer n.group.Close()
	errs := make([]error, len(n.order))
	var running sync.WaitGroup
	for i, namespace := range n.order {
		running.Go(func() { errs[i] = n.stores[namespace].Run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

var errNoNamespace = errors.New("safestore: the key has no namespace")

// Store returns the store of one namespace, and whether there is one.
func (n *Namespaces[T]) Store(namespace string) (*Store[T], bool) {
	s, ok := n.stores[namespace]
	return s, ok
}

// Get returns the object of that key as [Store.Get] does, waiting only for its own
// namespace. That the namespace is none of these is an error, not a NotFound.
func (n *Namespaces[T]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	if s, ok := n.stores[key.Namespace]; ok {
		return s.Get(ctx, key)
	}
	var none T
	return none, cmp.Or(n.has(key.Namespace), errNoNamespace)
}

// List returns the objects that match all options, as [Store.List] does. With
// [InNamespace] it waits only for that namespace; otherwise all of them must be
// ready.
func (n *Namespaces[T]) List(ctx context.Context, opts ...ListOption) ([]T, error) {
	namespace := queryOf(opts).namespace
	if s, ok := n.stores[namespace]; ok {
		return s.List(ctx, opts...)
	}
	if err := n.has(namespace); err != nil {
		return nil, err
	}
	snapshot, err := n.WaitSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	return snapshot.List(opts...)
}

// Snapshot returns the current view of all namespaces, without waiting. Its token
// is the group's, and ends when that of any namespace does. Its resource version is
// empty, since each namespace is at one of its own; its age is that of the oldest.
func (n *Namespaces[T]) Snapshot() (*Snapshot[T], error) {
	joint, err := n.group.Snapshot()
	if err != nil {
		return nil, err
	}
	return n.In(joint)
}

// WaitSnapshot returns what [Namespaces.Snapshot] does, waiting until all
// namespaces are ready.
func (n *Namespaces[T]) WaitSnapshot(ctx context.Context) (*Snapshot[T], error) {
	joint, err := n.group.WaitSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	return n.In(joint)
}

// In returns the part of all namespaces in a snapshot of a group, as [Store.In]
// does.
func (n *Namespaces[T]) In(joint *JointSnapshot) (*Snapshot[T], error) {
	all := &Snapshot[T]{token: joint.token, complete: true, only: n}
	var parts []indexedSet[T]
	for _, namespace := range n.order {
		one, err := n.stores[namespace].In(joint)
		if err != nil {
			return nil, err
		}
		parts = append(parts, one.set)
		all.indexes, all.resource = one.indexes, one.resource
		if all.proof.AsOf.IsZero() || one.proof.AsOf.Before(all.proof.AsOf) {
			all.proof = one.proof
		}
	}
	all.set = joined(parts)
	return all, nil
}

// has returns an error for a namespace that is none of these: what is there is not
// known. Empty is all of them. A nil Namespaces has all there are.
func (n *Namespaces[T]) has(namespace string) error {
	if n == nil || namespace == "" || n.stores[namespace] != nil {
		return nil
	}
	return fmt.Errorf("safestore: %s: namespace %q is not one of its namespaces", n.Name(), namespace)
}
