package safestore

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// ListOption narrows or orders a List. All options of one List apply together; of
// those of the same kind the last one counts.
type ListOption func(*query)

// query is what the options of a List come to.
type query struct {
	namespace string
	selector  labels.Selector // nil for all
	index     string          // empty for none
	value     string
	limit     int // 0 for none
	sorted    bool
}

// InNamespace lists the objects of one namespace. The empty string is no
// restriction, as in client-go and controller-runtime.
func InNamespace(namespace string) ListOption {
	return func(q *query) { q.namespace = namespace }
}

// MatchingLabels lists the objects that have all the given labels, with these
// values.
func MatchingLabels(set map[string]string) ListOption {
	return MatchingLabelsSelector(labels.SelectorFromSet(set))
}

// MatchingLabelsSelector lists the objects whose labels match. Nil is no
// restriction.
func MatchingLabelsSelector(selector labels.Selector) ListOption {
	return func(q *query) { q.selector = selector }
}

// ByIndex lists the objects that an index of the store has under a value. A List
// by an index that the store does not have fails, naming those it has.
func ByIndex(index, value string) ListOption {
	return func(q *query) { q.index, q.value = index, value }
}

// Limit lists no more than n objects; which ones is only determined together with
// Sorted. Zero and less is no limit.
func Limit(n int) ListOption {
	return func(q *query) { q.limit = max(n, 0) }
}

// Sorted lists the objects in the order of their namespaces and names.
func Sorted() ListOption {
	return func(q *query) { q.sorted = true }
}

// List returns the objects that all options match, in no particular order unless
// [Sorted] is one of them. The slice is the caller's own; the objects are shared.
// The one error is that of an index that the store does not have.
func (s *Snapshot[T]) List(opts ...ListOption) ([]T, error) {
	var q query
	for _, opt := range opts {
		opt(&q)
	}
	set := s.set.objects
	if q.index != "" {
		n, err := s.indexes.find(q.index)
		if err != nil {
			return nil, err
		}
		set = s.set.by(n, q.value)
	}
	seq, size := set.all(), set.count
	if q.namespace != "" {
		seq, size = set.in(q.namespace), set.countIn(q.namespace)
	}
	if q.selector != nil && !q.selector.Empty() {
		size = 0 // nobody knows
	}
	list := make([]T, 0, size)
	for obj := range seq {
		if q.selector != nil && !q.selector.Matches(labels.Set(obj.GetLabels())) {
			continue
		}
		if list = append(list, obj); len(list) == q.limit && !q.sorted {
			break
		}
	}
	if q.sorted {
		slices.SortFunc(list, func(a, b T) int {
			return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
		})
	}
	if q.limit > 0 && len(list) > q.limit {
		list = slices.Clip(list[:q.limit])
	}
	return list, nil
}
