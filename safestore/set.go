package safestore

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/internal/trie"
)

// indexedSet is a set of objects with its indexes. It is immutable, and the zero
// value is empty.
type indexedSet[T Object] struct {
	objects objects[T]
	// indexed has, for each index, the objects by value; nil if there are none.
	indexed []trie.Map[objects[T]]
	// bad are the objects that exist but cannot be kept, of a lenient store.
	bad   objects[*BadObjectError]
	bytes int64 // estimated, of objects, if that is limited

	// parts are what a joined set was made of, and have the indexes; nil for others.
	parts []indexedSet[T]
}

// by returns the objects of one value of an index.
func (c indexedSet[T]) by(index int, value string) objects[T] {
	if len(c.parts) > 0 {
		return union(c.parts, func(part indexedSet[T]) objects[T] { return part.by(index, value) })
	}
	if index >= len(c.indexed) {
		return objects[T]{}
	}
	set, _ := c.indexed[index].Get(value)
	return set
}

// joinSets returns the union of sets that have no namespace in common, and the same
// indexes. It costs a little for each namespace, and nothing for each object.
func joinSets[T Object](parts []indexedSet[T]) indexedSet[T] {
	return indexedSet[T]{
		objects: union(parts, func(part indexedSet[T]) objects[T] { return part.objects }),
		bad:     union(parts, func(part indexedSet[T]) objects[*BadObjectError] { return part.bad }),
		parts:   parts,
	}
}

func union[T Object, V any](parts []indexedSet[T], of func(indexedSet[T]) objects[V]) objects[V] {
	var all objects[V]
	namespaces := all.namespaces.Edit()
	for _, part := range parts {
		one := of(part)
		for namespace, names := range one.namespaces.All() {
			namespaces.Set(namespace, names)
		}
		all.count += one.count
	}
	all.namespaces = namespaces.Map()
	return all
}

// edit returns a draft that starts from this set.
func (c indexedSet[T]) edit(all indexes[T], most limits) *draft[T] {
	d := &draft[T]{all: all, limits: most, objects: c.objects.edit(), bytes: c.bytes}
	if c.bad.count > 0 {
		d.bad = c.bad.edit()
	}
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
	limits  limits
	objects *builder[T]
	bad     *builder[*BadObjectError] // nil if there are none
	indexed []*trie.Editor[objects[T]]
	open    []map[string]*builder[T] // by index, the values being edited
	bytes   int64
}

// set puts obj in, in place of what was there. If it fails with a BadObjectError
// nothing has changed; after any other error the draft is of no use.
func (d *draft[T]) set(obj T) error {
	values, err := d.all.of(obj)
	if err != nil {
		return err
	}
	key := Key(obj)
	if _, err := d.forget(key, values); err != nil {
		return err
	}
	d.objects.set(key, obj)
	d.bytes += d.limits.size(obj)
	for n := range d.all {
		for _, value := range values[n] {
			d.value(n, value).set(key, obj)
		}
	}
	return d.check()
}

// quarantine takes note of an object that cannot be kept, in place of what was
// there.
func (d *draft[T]) quarantine(b *BadObjectError) error {
	if err := d.delete(b.Key); err != nil {
		return err
	}
	if d.bad == nil {
		d.bad = objects[*BadObjectError]{}.edit()
	}
	d.bad.set(b.Key, b)
	return d.check()
}

func (d *draft[T]) check() error {
	count := d.objects.count
	if d.bad != nil {
		count += d.bad.count
	}
	return d.limits.check(count, d.bytes)
}

// delete takes out what is there under a key.
func (d *draft[T]) delete(key types.NamespacedName) error {
	exists, err := d.forget(key, nil)
	if exists {
		d.objects.delete(key)
	}
	return err
}

// forget removes all traces of what is there under a key but the object itself,
// and reports whether there is one. What is to be under the given values of the
// indexes will take the place of what is.
func (d *draft[T]) forget(key types.NamespacedName, taken [][]string) (exists bool, err error) {
	if d.bad != nil {
		d.bad.delete(key)
	}
	old, exists := d.objects.get(key)
	if !exists {
		return false, nil
	}
	values, err := d.all.of(old)
	if err != nil {
		return true, fmt.Errorf("%v", err) // not bad when it was set: the function is not pure
	}
	for n := range d.all {
		for _, value := range values[n] {
			if taken == nil || !slices.Contains(taken[n], value) {
				d.value(n, value).delete(key)
			}
		}
	}
	d.bytes -= d.limits.size(old)
	return true, nil
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
	c := indexedSet[T]{objects: d.objects.objects(), bytes: d.bytes}
	if d.bad != nil {
		c.bad = d.bad.objects()
	}
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
