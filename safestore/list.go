package safestore

import "k8s.io/apimachinery/pkg/labels"

// ListOption narrows or orders a List, Select or Count. All options of one call
// apply together; of those of the same kind the last one counts.
type ListOption func(*query)

// query is what the options of a List come to.
type query struct {
	namespace string
	selector  labels.Selector // nil for all
	index     string          // empty for none
	value     string
	limit     int // 0 for none
	sorted    bool
	copied    bool
}

func queryOf(opts []ListOption) (q query) {
	for _, opt := range opts {
		opt(&q)
	}
	return q
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

// DeepCopy lists copies, which are the caller's to change, in place of the objects
// that all readers share.
func DeepCopy() ListOption {
	return func(q *query) { q.copied = true }
}
