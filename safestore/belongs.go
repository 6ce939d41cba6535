package safestore

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var _ interface{ CheckType(runtime.Object) error } = (*writer[Object])(nil)

// CheckType implements watcher.TypeChecker.
func (w *writer[T]) CheckType(listOrBookmark runtime.Object) error { return belongs[T](listOrBookmark) }

// belongs returns an error if a list or a bookmark is of other objects than a store
// of T holds. An empty list of the wrong type would otherwise say of each object of
// the right one that it does not exist. What does not say its type belongs.
func belongs[T Object](received runtime.Object) error {
	switch received := received.(type) {
	case *unstructured.UnstructuredList:
		if name, ok := strings.CutSuffix(received.GetKind(), "List"); !ok || name == "" || listsKind[T](name) {
			return nil
		}
		return fmt.Errorf("a list of kind %s: the store holds %s", received.GetKind(), typeName[T]())
	case *unstructured.Unstructured:
		if kind := received.GetKind(); kind == "" || holdsKind[T](kind) {
			return nil
		}
		return fmt.Errorf("a bookmark of kind %s: the store holds %s", received.GetKind(), typeName[T]())
	}
	of := reflect.TypeOf(received)
	if meta.IsListType(received) {
		if of = itemType(received); of == nil {
			return nil
		}
	}
	if of.AssignableTo(reflect.TypeFor[T]()) {
		return nil
	}
	return fmt.Errorf("%T: the store holds %s", received, typeName[T]())
}

// holdsKind reports whether untyped objects of a kind can be kept as T.
func holdsKind[T Object](kind string) bool {
	if _, own := any((*unstructured.Unstructured)(nil)).(T); own {
		return true
	}
	return convertible[T](kind)
}

// listsKind is holdsKind for the kind of a list without its ending: usually that of
// its items, and the plural of it for some custom resources.
func listsKind[T Object](name string) bool {
	if holdsKind[T](name) {
		return true
	}
	return strings.EqualFold(resourceOf[T]().Resource, name)
}

// itemType returns the type of pointers to the items of a typed list, nil if its
// items may be of any type.
func itemType(list runtime.Object) reflect.Type {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil
	}
	item := reflect.TypeOf(items).Elem().Elem()
	if item.Kind() != reflect.Pointer {
		item = reflect.PointerTo(item)
	}
	if !item.Implements(reflect.TypeFor[Object]()) {
		return nil // runtime.RawExtension, or an interface
	}
	return item
}
