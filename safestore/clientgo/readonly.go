package clientgo

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// The writing half of cache.Indexer. Nothing but the watch writes a store (C47).

// Add implements cache.Store.
func (i *indexer[T]) Add(any) error { return i.readOnly("Add") }

// Update implements cache.Store.
func (i *indexer[T]) Update(any) error { return i.readOnly("Update") }

// Delete implements cache.Store.
func (i *indexer[T]) Delete(any) error { return i.readOnly("Delete") }

// Replace implements cache.Store.
func (i *indexer[T]) Replace([]any, string) error { return i.readOnly("Replace") }

// AddIndexers implements cache.Indexer.
func (i *indexer[T]) AddIndexers(cache.Indexers) error {
	return fmt.Errorf("%w; its indexes are declared with safestore.New", i.readOnly("AddIndexers"))
}

// Bookmark implements cache.Store.
func (i *indexer[T]) Bookmark(string) { panic(i.readOnly("Bookmark")) }

// Resync implements cache.Store. There is nothing to do, as in client-go's own
// caches.
func (i *indexer[T]) Resync() error { return nil }

func (i *indexer[T]) readOnly(method string) error {
	return fmt.Errorf("clientgo: %s on %s: %w", method, i.store.Name(), ErrReadOnly)
}
