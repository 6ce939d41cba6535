package safestore

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WithTransform adds a function that each object goes through once, before it is
// kept: to drop what the program does not read, for example. It owns the object
// and may change it or return another; name, namespace, UID and resource version
// must stay as they are. Several transforms apply in their order.
//
// If it fails or panics the store is not ready, for [invalidation.BadData], and
// the object is named (C50). What it fails with is part of the error: it must not
// quote what the object holds.
func WithTransform[T Object](transform func(T) (T, error)) Option[T] {
	return func(s *Store[T]) error {
		if transform == nil {
			return errors.New("WithTransform: the function is nil")
		}
		s.transforms = append(s.transforms, transform)
		return nil
	}
}

// WithoutManagedFields drops the managed fields of each object, which few programs
// read and which can be half of it.
func WithoutManagedFields[T Object]() Option[T] {
	return WithTransform(func(obj T) (T, error) {
		obj.SetManagedFields(nil)
		return obj, nil
	})
}

// keep makes of what was received the object that is kept, decoded if it came from
// a dynamic client and put through the transforms. It fails with a BadObjectError.
func (s *Store[T]) keep(received Object) (T, error) {
	key, id := Key(received), identityOf(received) // a transform may change them
	obj, ok := received.(T)
	var err error
	if !ok {
		obj, err = convert[T](received.(*unstructured.Unstructured))
	}
	if err == nil {
		obj, err = s.transform(obj)
	}
	if err != nil {
		return obj, &BadObjectError{Key: key, Err: err, kind: fmt.Sprintf("%T", obj), identity: id}
	}
	return obj, nil
}

// transform puts an object through the store's transforms.
func (s *Store[T]) transform(obj T) (kept T, err error) {
	if len(s.transforms) == 0 {
		return obj, nil
	}
	key, same := Key(obj), identityOf(obj)
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("transform: panic") // v may quote the object
		}
	}()
	kept = obj
	for _, transform := range s.transforms {
		if kept, err = transform(kept); err != nil {
			return kept, fmt.Errorf("transform: %w", err)
		}
	}
	if Key(kept) != key || identityOf(kept) != same {
		return kept, errors.New("transform: it changed what the object is")
	}
	return kept, nil
}
