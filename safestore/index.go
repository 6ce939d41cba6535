package safestore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-safestore/kube-safestore/safestore/internal/trie"
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

// of returns the values of an object.
func (i index[T]) of(obj T) (values []string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("index %q: panic on %s", i.name, describe(obj)) // v may quote the object
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

// indexedSet is a set of objects with its indexes. It is immutable, and the zero
// value is empty.
type indexedSet[T Object] struct {
	objects objects[T]
	// indexed has, for each index, the objects by value; nil if there are none.
	indexed []trie.Map[objects[T]]
}

// by returns the objects of one value of an index.
func (c indexedSet[T]) by(index int, value string) objects[T] {
	if index >= len(c.indexed) {
		return objects[T]{}
	}
	set, _ := c.indexed[index].Get(value)
	return set
}

// edit returns a draft that starts from this set.
func (c indexedSet[T]) edit(all indexes[T]) *draft[T] {
	d := &draft[T]{all: all, objects: c.objects.edit()}
	for n := range all {
		var values trie.Map[objects[T]]
		if n < len(c.indexed) {
			values = c.indexed[n]
		}
		d.indexed = append(d.indexed, values.Edit())
		d.open = append(d.open, map[string]*builder[T]{})
	}
	return d
}

// draft makes an indexed set, one edit at a time.
type draft[T Object] struct {
	all     indexes[T]
	objects *builder[T]
	indexed []*trie.Editor[objects[T]]
	open    []map[string]*builder[T] // by index, the values being edited
}

// set puts obj in, in place of what was there. If it fails the draft is of no use
// any more.
func (d *draft[T]) set(obj T) error {
	if err := d.unindex(obj); err != nil {
		return err
	}
	d.objects.set(obj)
	for n, i := range d.all {
		values, err := i.of(obj)
		if err != nil {
			return err
		}
		for _, value := range values {
			d.value(n, value).set(obj)
		}
	}
	return nil
}

// delete takes the object of obj's key out.
func (d *draft[T]) delete(obj T) error {
	err := d.unindex(obj)
	d.objects.delete(Key(obj))
	return err
}

// unindex takes the object of obj's key out of the indexes.
func (d *draft[T]) unindex(obj T) error {
	if len(d.all) == 0 {
		return nil
	}
	old, ok := d.objects.get(Key(obj))
	if !ok {
		return nil
	}
	for n, i := range d.all {
		values, err := i.of(old)
		if err != nil {
			return err
		}
		for _, value := range values {
			d.value(n, value).delete(Key(old))
		}
	}
	return nil
}

func (d *draft[T]) value(index int, value string) *builder[T] {
	b, ok := d.open[index][value]
	if !ok {
		set, _ := d.indexed[index].Get(value)
		b = set.edit()
		d.open[index][value] = b
	}
	return b
}

// finish returns what was made. The draft must not be used after it.
func (d *draft[T]) finish() indexedSet[T] {
	c := indexedSet[T]{objects: d.objects.objects()}
	for n, e := range d.indexed {
		for value, b := range d.open[n] {
			if set := b.objects(); set.count == 0 {
				e.Delete(value)
			} else {
				e.Set(value, set)
			}
		}
		c.indexed = append(c.indexed, e.Map())
	}
	return c
}
