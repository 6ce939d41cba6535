package safestore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-safestore/kube-safestore/safestore/internal/trie"
)

// Index finds objects by a value that a function computes from them. It is
// declared when the store is made and belongs to each snapshot: objects and
// indexes of one snapshot always agree (C53).
type Index[T Object] struct {
	name   string
	values func(T) []string
}

// NewIndex returns an index of the given name. The function returns the values
// under which an object is found, none if it is not to be found; it must depend on
// the object alone and not change it. If it panics the store is not ready, for
// [invalidation.BadData] and naming the object: an index with a gap would lie.
func NewIndex[T Object](name string, values func(T) []string) Index[T] {
	return Index[T]{name: name, values: values}
}

// LabelIndex returns an index by the value of a label, named like the label.
// Objects without the label are not found.
func LabelIndex[T Object](label string) Index[T] {
	return NewIndex(label, func(obj T) []string {
		if value, ok := obj.GetLabels()[label]; ok {
			return []string{value}
		}
		return nil
	})
}

// of returns the values of an object.
func (i Index[T]) of(obj T) (values []string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("index %q: panic on %s", i.name, describe(obj)) // v may quote the object
		}
	}()
	return i.values(obj), nil
}

// indexes are the indexes of a store, in a fixed order.
type indexes[T Object] []Index[T]

func validateIndexes[T Object](all []Index[T]) error {
	seen := map[string]bool{}
	for n, i := range all {
		switch {
		case i.name == "":
			return fmt.Errorf("index %d has no name", n)
		case i.values == nil:
			return fmt.Errorf("index %q has no function", i.name)
		case seen[i.name]:
			return fmt.Errorf("index %q is there twice", i.name)
		}
		seen[i.name] = true
	}
	return nil
}

// find returns the position of an index.
func (all indexes[T]) find(name string) (int, error) {
	n := slices.IndexFunc(all, func(i Index[T]) bool { return i.name == name })
	if n >= 0 {
		return n, nil
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = fmt.Sprintf("%q", all[i].name)
	}
	return 0, fmt.Errorf("safestore: no index %q: there are %s", name, cmpOrNone(strings.Join(names, ", ")))
}

func cmpOrNone(list string) string {
	if list == "" {
		return "none"
	}
	return list
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
