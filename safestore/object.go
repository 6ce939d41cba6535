package safestore

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is what a store holds: a pointer to a Kubernetes object, such as
// *corev1.Pod, *unstructured.Unstructured or *metav1.PartialObjectMetadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key returns the key of an object: its namespace, empty if it is of the
// cluster, and its name.
func Key(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// describe names an object without showing what is in it.
func describe(obj runtime.Object) string {
	if obj == nil {
		return "nil"
	}
	if m, err := meta.Accessor(obj); err == nil {
		return fmt.Sprintf("%T %s", obj, Key(m))
	}
	return fmt.Sprintf("%T", obj)
}

// resourceOf guesses the resource that a Go type stands for, for NotFound errors
// to name: pods for *corev1.Pod. Types that hold any kind of object give none.
func resourceOf[T Object]() schema.GroupResource {
	t := reflect.TypeFor[T]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Name() {
	case "", "Unstructured", "PartialObjectMetadata":
		return schema.GroupResource{Resource: "object"}
	}
	return resourceOfKind(schema.GroupVersionKind{Kind: t.Name()})
}

// resourceOfKind guesses the resource of a kind; there is none without a kind.
func resourceOfKind(kind schema.GroupVersionKind) schema.GroupResource {
	if kind.Kind == "" {
		return schema.GroupResource{}
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource()
}

// typeName returns the name of T for people: v1.Pod.
func typeName[T any]() string {
	return strings.TrimLeft(reflect.TypeFor[T]().String(), "*")
}
