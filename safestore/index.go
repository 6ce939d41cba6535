package safestore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// index finds objects by a value that a function computes from them.
type index[T Object] struct {
	name   string
	values func(T) []string
}

// WithIndex adds an index to a store: [ByIndex] lists the objects by the values
// that a function computes from them, none for an object that is not to be found.
// The index belongs to each snapshot, and always agrees with its objects (C53).
//
// The function must depend on the object alone and not change it. If it panics the
// store is not ready, for [invalidation.BadData] and naming the object: an index
// with a gap would lie. It sees objects as they are kept, after transforms.
func WithIndex[T Object](name string, values func(T) []string) Option[T] {
	return func(s *Store[T]) error {
		switch {
		case name == "":
			return errors.New("WithIndex: the name is empty")
		case values == nil:
			return fmt.Errorf("WithIndex %q: the function is nil", name)
		}
		if _, err := s.indexes.find(name); err == nil {
			return fmt.Errorf("WithIndex %q: there is one of that name", name)
		}
		s.indexes = append(s.indexes, index[T]{name: name, values: values})
		return nil
	}
}

// WithLabelIndex adds an index by the value of a label, named like the label.
// Objects without the label are not found.
func WithLabelIndex[T Object](label string) Option[T] {
	return WithIndex(label, func(obj T) []string {
		if value, ok := obj.GetLabels()[label]; ok {
			return []string{value}
		}
		return nil
	})
}

// WithFieldIndex adds an index by the value of one field, such as
// "spec.nodeName", which it is named after. Objects whose value is empty are not
// found.
func WithFieldIndex[T Object](field string, value func(T) string) Option[T] {
	if value == nil {
		return WithIndex[T](field, nil) // which is refused
	}
	return WithIndex(field, func(obj T) []string {
		if v := value(obj); v != "" {
			return []string{v}
		}
		return nil
	})
}

// Indexes returns the functions of the store's indexes, by name. The map is the
// caller's own.
func (s *Store[T]) Indexes() map[string]func(T) []string {
	all := make(map[string]func(T) []string, len(s.indexes))
	for _, i := range s.indexes {
		all[i.name] = i.values
	}
	return all
}

// of returns the values of an object.
func (i index[T]) of(obj T) (values []string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("index %q: panic", i.name) // v may quote the object
		}
	}()
	return i.values(obj), nil
}

// indexes are the indexes of a store, in a fixed order.
type indexes[T Object] []index[T]

// find returns the position of an index.
func (all indexes[T]) find(name string) (int, error) {
	n := slices.IndexFunc(all, func(i index[T]) bool { return i.name == name })
	if n >= 0 {
		return n, nil
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = fmt.Sprintf("%q", all[i].name)
	}
	return 0, fmt.Errorf("safestore: no index %q: there are %s", name, cmp.Or(strings.Join(names, ", "), "none"))
}

// of returns the values of an object in each index. It fails with a
// BadObjectError.
func (all indexes[T]) of(obj T) ([][]string, error) {
	if len(all) == 0 {
		return nil, nil
	}
	values := make([][]string, len(all))
	for n, i := range all {
		var err error
		if values[n], err = i.of(obj); err != nil {
			return nil, &BadObjectError{Key: Key(obj), Err: err, kind: fmt.Sprintf("%T", obj), identity: identityOf(obj)}
		}
	}
	return values, nil
}
