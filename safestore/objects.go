package safestore

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/internal/trie"
)

// objects is an immutable set of objects, or of what is known of them, by namespace
// and name. The zero value is empty. Namespaces are a level of their own, so that
// one can be read without looking at the others, and no read has to build a key.
type objects[T any] struct {
	namespaces trie.Map[trie.Map[T]]
	count      int
}

func (o objects[T]) get(key types.NamespacedName) (T, bool) {
	names, _ := o.namespaces.Get(key.Namespace)
	return names.Get(key.Name)
}

func (o objects[T]) has(key types.NamespacedName) bool {
	_, ok := o.get(key)
	return ok
}

// all iterates over all objects, those of one namespace together.
func (o objects[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		each := func(_ string, obj T) bool { return yield(obj) } // one for all namespaces, which may be many
		o.namespaces.Each(func(_ string, names trie.Map[T]) bool { return names.Each(each) })
	}
}

// in iterates over the objects of one namespace.
func (o objects[T]) in(namespace string) iter.Seq[T] {
	return func(yield func(T) bool) {
		names, _ := o.namespaces.Get(namespace)
		names.Each(func(_ string, obj T) bool { return yield(obj) })
	}
}

// countIn returns the number of objects in one namespace.
func (o objects[T]) countIn(namespace string) int {
	names, _ := o.namespaces.Get(namespace)
	return names.Len()
}

// edit returns a builder that starts from this set.
func (o objects[T]) edit() *builder[T] {
	return &builder[T]{namespaces: o.namespaces.Edit(), count: o.count}
}

// builder makes a set, one edit at a time, without copying for each: as long as
// edits stay in one namespace, as in a list, which comes in the order of keys.
type builder[T any] struct {
	namespaces *trie.Editor[trie.Map[T]]
	count      int

	open  string          // the namespace being edited
	names *trie.Editor[T] // its objects, nil before the first edit
}

func (b *builder[T]) namespace(name string) *trie.Editor[T] {
	if b.names == nil || b.open != name {
		b.close()
		names, _ := b.namespaces.Get(name)
		b.open, b.names = name, names.Edit()
	}
	return b.names
}

// close takes over what was edited in the open namespace.
func (b *builder[T]) close() {
	switch {
	case b.names == nil:
	case b.names.Len() == 0:
		b.namespaces.Delete(b.open)
	default:
		b.namespaces.Set(b.open, b.names.Map())
	}
}

func (b *builder[T]) get(key types.NamespacedName) (T, bool) {
	return b.namespace(key.Namespace).Get(key.Name)
}

func (b *builder[T]) set(key types.NamespacedName, obj T) {
	names := b.namespace(key.Namespace)
	before := names.Len()
	names.Set(key.Name, obj)
	b.count += names.Len() - before
}

func (b *builder[T]) delete(key types.NamespacedName) {
	if b.namespace(key.Namespace).Delete(key.Name) {
		b.count--
	}
}

// objects returns the set as it is now. The builder must not be used after it.
func (b *builder[T]) objects() objects[T] {
	b.close()
	return objects[T]{namespaces: b.namespaces.Map(), count: b.count}
}
