package safestore

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// convert makes an object of type T from one of a dynamic client. What it fails
// with names the field, and never shows what is in it.
func convert[T Object](from *unstructured.Unstructured) (T, error) {
	into := reflect.TypeFor[T]().Elem()
	obj, err := decode(into, from.Object)
	if err != nil {
		var none T
		return none, fmt.Errorf("%s cannot be decoded into %v", culprit(into, from.Object), into)
	}
	return obj.(T), nil
}

// convertible reports whether objects of a dynamic client can become objects of
// type T: a struct that is named like their kind, or one that stands for any.
func convertible[T Object](kind string) bool {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	name := t.Elem().Name()
	return name == kind || name == "PartialObjectMetadata"
}

// decode makes a new value of type into. The error may quote what was decoded.
func decode(into reflect.Type, from map[string]any) (obj any, err error) {
	defer func() {
		if v := recover(); v != nil { // by a type's own decoding
			err = fmt.Errorf("panic while decoding into %v", into)
		}
	}()
	obj = reflect.New(into).Interface()
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(from, obj)
}

// culprit returns the path of the smallest part of an object that cannot be
// decoded by itself. Most types do not say which of their fields failed.
func culprit(into reflect.Type, object map[string]any) string {
	fails := func(part any) bool {
		_, err := decode(into, part.(map[string]any))
		return err != nil
	}
	path := narrow(nil, object, fails)
	if path == nil {
		return "the object"
	}
	return "field " + path.String()
}

// narrow follows fails into value, of which around makes the whole object again.
func narrow(path *field.Path, value any, fails func(any) bool) *field.Path {
	switch value := value.(type) {
	case map[string]any:
		if fails(map[string]any{}) {
			return path // there should be something else than an object
		}
		for name, part := range value {
			inner := func(part any) bool { return fails(map[string]any{name: part}) }
			if inner(part) {
				return narrow(child(path, name), part, inner)
			}
		}
	case []any:
		if fails([]any{}) {
			return path
		}
		for n, part := range value {
			inner := func(part any) bool { return fails([]any{part}) }
			if inner(part) {
				return narrow(path.Index(n), part, inner)
			}
		}
	}
	return path
}

// child returns the path of a field, or of a key that does not look like one.
func child(path *field.Path, name string) *field.Path {
	if strings.ContainsAny(name, "./") {
		return path.Key(name)
	}
	return path.Child(name)
}
