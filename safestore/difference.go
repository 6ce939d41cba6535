package safestore

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/internal/trie"
)

// difference calls yield for each key that the two sets do not hold alike, in one
// namespace or, if that is empty, in all, until it returns false. was and is are
// nil where there is no object. What the sets share is not looked at. The order is
// no particular one, but for the same two sets it is always the same.
func difference[T Object](o, next objects[T], namespace string, yield func(key types.NamespacedName, was, is *T) bool) {
	inOne := func(namespace string, was, is *trie.Map[T]) bool {
		var old, new trie.Map[T]
		if was != nil {
			old = *was
		}
		if is != nil {
			new = *is
		}
		return trie.Diff(old, new, alike, func(name string, was, is *T) bool {
			return yield(types.NamespacedName{Namespace: namespace, Name: name}, was, is)
		})
	}
	if namespace != "" {
		was, _ := o.namespaces.Get(namespace)
		is, _ := next.namespaces.Get(namespace)
		inOne(namespace, &was, &is)
		return
	}
	identical := func(a, b trie.Map[T]) bool { return a == b }
	trie.Diff(o.namespaces, next.namespaces, identical, inOne)
}

// alike reports whether two objects of one key are the same one in the same state
// (C36). Equal versions alone do not say so: a server that was rewound uses them
// again, and fakes do not count them. But where the store has kept the object in
// place, which is nearly always, there is nothing to compare.
func alike[T Object](a, b T) bool {
	return any(a) == any(b) || identityOf(a) == identityOf(b) && reflect.DeepEqual(a, b)
}
