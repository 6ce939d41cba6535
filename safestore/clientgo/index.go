package clientgo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// indexersOf returns the indexes of a store, and that of the namespaces.
func indexersOf[T safestore.Object](store *safestore.Store[T]) cache.Indexers {
	indexers := cache.Indexers{}
	for name, valuesOf := range store.Indexes() {
		indexers[name] = func(obj any) ([]string, error) {
			typed, ok := obj.(T)
			if !ok {
				return nil, fmt.Errorf("clientgo: index %q of %s: an object of type %T", name, store.Name(), obj)
			}
			return valuesOf(typed), nil
		}
	}
	indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	return indexers
}

// find returns the function of an index.
func (i *indexer[T]) find(index string) (cache.IndexFunc, error) {
	if valuesOf, ok := i.indexers[index]; ok {
		return valuesOf, nil
	}
	names := slices.Sorted(maps.Keys(i.indexers))
	return nil, fmt.Errorf("clientgo: no index %q: %s has \"%s\"", index, i.store.Name(), strings.Join(names, `", "`))
}

// GetIndexers implements cache.Indexer.
func (i *indexer[T]) GetIndexers() cache.Indexers { return maps.Clone(i.indexers) }

// Index implements cache.Indexer.
func (i *indexer[T]) Index(index string, obj any) ([]any, error) {
	valuesOf, err := i.find(index)
	if err != nil {
		return nil, err
	}
	values, err := valuesOf(obj)
	if err != nil {
		return nil, err
	}
	found, err := i.under(index, values...)
	if err != nil {
		return nil, err
	}
	return untyped(found), nil
}

// ByIndex implements cache.Indexer.
func (i *indexer[T]) ByIndex(index, value string) ([]any, error) {
	found, err := i.under(index, value)
	if err != nil {
		return nil, err
	}
	return untyped(found), nil
}

// IndexKeys implements cache.Indexer.
func (i *indexer[T]) IndexKeys(index, value string) ([]string, error) {
	found, err := i.under(index, value)
	if err != nil {
		return nil, err
	}
	return keys(found), nil
}

// ListIndexFuncValues implements cache.Indexer.
func (i *indexer[T]) ListIndexFuncValues(index string) []string {
	valuesOf, err := i.find(index)
	if err != nil {
		panic(err)
	}
	all := map[string]struct{}{}
	for _, obj := range i.list() {
		values, err := valuesOf(obj)
		if err != nil {
			panic(err) // not reached: it is of the store's type
		}
		for _, value := range values {
			all[value] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// under returns the objects that an index has under any of the values, each of
// them once.
func (i *indexer[T]) under(index string, values ...string) ([]T, error) {
	if _, err := i.find(index); err != nil {
		return nil, err
	}
	snapshot, err := i.store.Snapshot()
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		return byIndex(snapshot, index, values[0])
	}
	all := map[types.NamespacedName]T{}
	for _, value := range values {
		list, err := byIndex(snapshot, index, value)
		if err != nil {
			return nil, err
		}
		for _, obj := range list {
			all[safestore.Key(obj)] = obj
		}
	}
	return slices.Collect(maps.Values(all)), nil
}

func byIndex[T safestore.Object](snapshot *safestore.Snapshot[T], index, value string) ([]T, error) {
	if index != cache.NamespaceIndex {
		return snapshot.List(safestore.ByIndex(index, value))
	}
	list, err := snapshot.List(safestore.InNamespace(value))
	if value == "" { // all namespaces to InNamespace, objects of the cluster here
		list = slices.DeleteFunc(list, func(obj T) bool { return obj.GetNamespace() != "" })
	}
	return list, err
}
