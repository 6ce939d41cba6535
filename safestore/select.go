package safestore

import (
	"cmp"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// List returns the objects that all options match, in no particular order unless
// [Sorted] is one of them. The slice is the caller's own; the objects are shared
// unless [DeepCopy] is one of the options.
//
// It fails for an index that the store does not have, for options that cannot be
// applied together, and with [ErrOutOfScope] for a namespace of which the store
// holds nothing whatever there is. From a lenient store it may return the objects that can be
// read together with [ErrPartial].
func (s *Snapshot[T]) List(opts ...ListOption) ([]T, error) {
	seq, size, err := s.find(queryOf(opts))
	if seq == nil {
		return nil, err
	}
	return slices.AppendSeq(make([]T, 0, max(size, 0)), seq), err
}

// Select iterates over what [Snapshot.List] returns, without a slice in between.
// Its errors are those of List; with ErrPartial there is an iterator as well.
func (s *Snapshot[T]) Select(opts ...ListOption) (iter.Seq2[types.NamespacedName, T], error) {
	seq, _, err := s.find(queryOf(opts))
	if seq == nil {
		return nil, err
	}
	return keyed(seq), err
}

// Count returns how many objects [Snapshot.List] returns, and its error.
func (s *Snapshot[T]) Count(opts ...ListOption) (int, error) {
	q := queryOf(opts)
	q.copied = false
	seq, size, err := s.find(q)
	if seq == nil || size >= 0 {
		return max(size, 0), err
	}
	count := 0
	for range seq {
		count++
	}
	return count, err
}

// All iterates over all objects that can be read, in no particular order.
func (s *Snapshot[T]) All() iter.Seq2[types.NamespacedName, T] { return keyed(s.set.objects.all()) }

// Bad iterates over the objects that exist and cannot be read; there are none
// unless the store is lenient.
func (s *Snapshot[T]) Bad() iter.Seq[*BadObjectError] { return s.set.bad.all() }

// find returns the objects that a query asks for, and how many they are: negative
// if only counting tells. What cannot be asked is nil and an error.
func (s *Snapshot[T]) find(q query) (seq iter.Seq[T], size int, err error) {
	if q.err != nil {
		return nil, 0, q.err
	}
	if q.namespace != "" {
		if err := s.covers(types.NamespacedName{Namespace: q.namespace}); err != nil {
			return nil, 0, err
		}
	}
	set, others, err := s.indexed(q)
	if err != nil {
		return nil, 0, err
	}
	seq, size = set.all(), set.count
	if q.namespace != "" {
		seq, size = set.in(q.namespace), set.countIn(q.namespace)
	}
	if len(others) > 0 {
		seq, size = inAll(seq, others), -1
	}
	seq, size = refine(q, seq, size)
	return seq, size, s.set.partial(q.namespace)
}

// indexed returns the smallest of the sets that the indexes of a query have under
// its values, and the others, in all of which an object must be; without indexes it
// returns all objects.
func (s *Snapshot[T]) indexed(q query) (set objects[T], others []objects[T], err error) {
	set = s.set.objects
	for i, by := range q.indexed {
		n, err := s.indexes.find(by.index)
		if err != nil {
			return set, nil, err
		}
		one := s.set.by(n, by.value)
		switch {
		case i == 0:
			set = one
		case one.count < set.count:
			set, others = one, append(others, set)
		default:
			others = append(others, one)
		}
	}
	return set, others, nil
}

// refine applies what a query asks for beyond namespace and indexes.
func refine[T Object](q query, seq iter.Seq[T], size int) (iter.Seq[T], int) {
	if all := q.selectors; len(all) > 0 {
		seq, size = filtered(seq, func(obj T) bool { return all.match(obj) }), -1
	}
	if q.sorted {
		seq = sorted(seq)
	}
	if q.limit > 0 {
		seq, size = first(seq, q.limit), min(size, q.limit)
	}
	if q.copied {
		seq = copies(seq)
	}
	return seq, size
}

// inAll leaves out the objects that are not in every one of some other sets.
func inAll[T Object](seq iter.Seq[T], others []objects[T]) iter.Seq[T] {
	return filtered(seq, func(obj T) bool {
		return !slices.ContainsFunc(others, func(other objects[T]) bool {
			_, in := other.get(Key(obj))
			return !in
		})
	})
}

func filtered[T Object](seq iter.Seq[T], wanted func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for obj := range seq {
			if wanted(obj) && !yield(obj) {
				return
			}
		}
	}
}

// sorted orders by namespace and name.
func sorted[T Object](seq iter.Seq[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		all := slices.SortedFunc(seq, func(a, b T) int {
			return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
		})
		for _, obj := range all {
			if !yield(obj) {
				return
			}
		}
	}
}

// first ends a sequence after n, which is positive.
func first[T Object](seq iter.Seq[T], n int) iter.Seq[T] {
	return func(yield func(T) bool) {
		left := n
		for obj := range seq {
			if left--; !yield(obj) || left == 0 {
				return
			}
		}
	}
}

func copies[T Object](seq iter.Seq[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for obj := range seq {
			if !yield(obj.DeepCopyObject().(T)) {
				return
			}
		}
	}
}

func keyed[T Object](seq iter.Seq[T]) iter.Seq2[types.NamespacedName, T] {
	return func(yield func(types.NamespacedName, T) bool) {
		for obj := range seq {
			if !yield(Key(obj), obj) {
				return
			}
		}
	}
}
