package safestore

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/safestore/internal/trie"
)

// objects is an immutable set of objects, or of what is known of them, by namespace
// and name. The zero value is empty. Namespaces are a level of their own, so that one can be read without
// looking at the others, and no read has to build a key.
type objects[T any] struct {
	namespaces trie.Map[trie.Map[T]]
	count      int
}

func (o objects[T]) get(key types.NamespacedName) (T, bool) {
	names, _ := o.namespaces.Get(key.Namespace)
	return names.Get(key.Name)
}

// all iterates over all objects, those of one namespace together.
func (o objects[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, names := range o.namespaces.All() {
			for _, obj := range names.All() {
				if !yield(obj) {
					return
				}
			}
		}
	}
}

// in iterates over the objects of one namespace.
func (o objects[T]) in(namespace string) iter.Seq[T] {
	return func(yield func(T) bool) {
		names, _ := o.namespaces.Get(namespace)
		for _, obj := range names.All() {
			if !yield(obj) {
				return
			}
		}
	}
}

// countIn returns the number of objects in one namespace.
func (o objects[T]) countIn(namespace string) int {
	names, _ := o.namespaces.Get(namespace)
	return names.Len()
}

// edit returns a builder that starts from this set.
func (o objects[T]) edit() *builder[T] {
	return &builder[T]{namespaces: o.namespaces.Edit(), count: o.count, open: map[string]*trie.Editor[T]{}}
}

// builder makes a set, one edit at a time, without copying for each.
type builder[T any] struct {
	namespaces *trie.Editor[trie.Map[T]]
	count      int
	open       map[string]*trie.Editor[T] // namespaces being edited
}

func (b *builder[T]) namespace(name string) *trie.Editor[T] {
	e, ok := b.open[name]
	if !ok {
		names, _ := b.namespaces.Get(name)
		e = names.Edit()
		b.open[name] = e
	}
	return e
}

func (b *builder[T]) get(key types.NamespacedName) (T, bool) {
	return b.namespace(key.Namespace).Get(key.Name)
}

func (b *builder[T]) set(key types.NamespacedName, obj T) {
	e := b.namespace(key.Namespace)
	before := e.Len()
	e.Set(key.Name, obj)
	b.count += e.Len() - before
}

func (b *builder[T]) delete(key types.NamespacedName) {
	if b.namespace(key.Namespace).Delete(key.Name) {
		b.count--
	}
}

// objects returns the set as it is now. The builder must not be used after it.
func (b *builder[T]) objects() objects[T] {
	for name, e := range b.open {
		if e.Len() == 0 {
			b.namespaces.Delete(name)
		} else {
			b.namespaces.Set(name, e.Map())
		}
	}
	return objects[T]{namespaces: b.namespaces.Map(), count: b.count}
}
