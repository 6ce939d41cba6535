package clientgo

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// ErrReadOnly is what the writing methods of an [Indexer] fail with: a store is
// written by its watch alone.
var ErrReadOnly = errors.New("a store is written by its watch alone")

// Indexer returns a store as generated listers and other readers of client-go's
// caches take it. Objects are shared, as with client-go: DeepCopy before changing
// one.
//
//   - Get, GetByKey, Index, IndexKeys and ByIndex do not wait. They fail with a
//     [*safestore.NotReadyError] if the store is not ready.
//   - List, ListKeys and ListIndexFuncValues have no error, and wait until the
//     store is ready. They panic with the NotReadyError when ctx ends or the store
//     is closed before that, and, after a short while, if Run is not called:
//     see [Recover].
//   - Of a lenient store with objects that cannot be kept, what would be less than
//     all fails, or panics, with a [*safestore.PartialError].
//   - LastStoreSyncResourceVersion does not wait, and is empty, which means
//     unknown, if the store is not ready.
//   - Add, Update, Delete, Replace and AddIndexers fail with [ErrReadOnly], and
//     Bookmark, which has no error, panics with it. Resync does nothing.
//
// Indexes are those that the store was made with, and cache.NamespaceIndex, which
// need not be declared and always is of the objects' namespaces. A name that is
// neither is an error that says which there are; ListIndexFuncValues panics with
// it.
//
// Indexer panics if ctx or store is nil.
func Indexer[T safestore.Object](ctx context.Context, store *safestore.Store[T]) cache.Indexer {
	switch {
	case ctx == nil:
		panic("clientgo: Indexer with a nil context")
	case store == nil:
		panic("clientgo: Indexer with a nil store")
	}
	return &indexer[T]{ctx: ctx, store: store, indexers: indexersOf(store)}
}

// indexer is a store as a cache.Indexer.
type indexer[T safestore.Object] struct {
	ctx      context.Context // bounds the waits of methods that take none
	store    *safestore.Store[T]
	indexers cache.Indexers
}

// Get implements cache.Store.
func (i *indexer[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		// Not a cache.KeyError, which quotes the object.
		return nil, false, fmt.Errorf("clientgo: %T has no key: %w", obj, err)
	}
	return i.GetByKey(key)
}

// GetByKey implements cache.Store.
func (i *indexer[T]) GetByKey(key string) (item any, exists bool, err error) {
	snapshot, err := i.store.Snapshot()
	if err != nil {
		return nil, false, err
	}
	name, err := cache.ParseObjectName(key)
	if err != nil || name.String() != key {
		return nil, false, nil // no object has such a key
	}
	obj, err := snapshot.Get(types.NamespacedName(name))
	switch {
	case err == nil:
		return obj, true, nil
	case apierrors.IsNotFound(err):
		return nil, false, nil
	default:
		return nil, false, err
	}
}

// List implements cache.Store.
func (i *indexer[T]) List() []any { return untyped(i.list()) }

// ListKeys implements cache.Store.
func (i *indexer[T]) ListKeys() []string { return keys(i.list()) }

// LastStoreSyncResourceVersion implements cache.Store.
func (i *indexer[T]) LastStoreSyncResourceVersion() string {
	snapshot, err := i.store.Snapshot()
	if err != nil {
		return ""
	}
	return snapshot.ResourceVersion()
}

// list returns all objects, waiting until the store is ready. The context bounds the
// wait alone: a store that is ready is read also when it is over.
func (i *indexer[T]) list() []T {
	snapshot, err := i.store.Snapshot()
	if err != nil {
		snapshot, err = i.store.WaitSnapshot(i.ctx)
	}
	if err != nil {
		panic(err)
	}
	all, err := snapshot.List()
	if err != nil {
		panic(err)
	}
	return all
}

func untyped[T safestore.Object](list []T) []any {
	all := make([]any, len(list))
	for n, obj := range list {
		all[n] = obj
	}
	return all
}

func keys[T safestore.Object](list []T) []string {
	all := make([]string, len(list))
	for n, obj := range list {
		all[n] = cache.MetaObjectToName(obj).String()
	}
	return all
}
