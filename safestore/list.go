package safestore

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// ListOption narrows or orders a List, Select or Count. All options of one call
// apply together, also those of the same kind: none takes another one back. What
// cannot be applied together, or at all, is an error of the call.
type ListOption func(*query)

// query is what the options of a List come to.
type query struct {
	namespace string
	selectors selectors
	indexed   []indexValue
	limit     int // 0 for none
	sorted    bool
	copied    bool
	err       error // the first thing that cannot be asked for
}

// indexValue is a value that an index must have for an object.
type indexValue struct{ index, value string }

func queryOf(opts []ListOption) (q query) {
	for _, opt := range opts {
		if opt == nil {
			q.refuse(errors.New("safestore: a ListOption is nil"))
			continue
		}
		opt(&q)
	}
	return q
}

func (q *query) refuse(err error) {
	if q.err == nil {
		q.err = err
	}
}

// selectors are what the labels of an object must match, all of them.
type selectors []labels.Selector

func (all selectors) match(obj Object) bool {
	for _, s := range all {
		if !s.Matches(labels.Set(obj.GetLabels())) {
			return false
		}
	}
	return true
}

// InNamespace lists the objects of one namespace. The empty string is no
// restriction, as in client-go and controller-runtime. No object is in two
// namespaces: asking for that is an error.
func InNamespace(namespace string) ListOption {
	return func(q *query) {
		if q.namespace != "" && namespace != "" && q.namespace != namespace {
			q.refuse(fmt.Errorf("safestore: InNamespace of both %q and %q", q.namespace, namespace))
		}
		if namespace != "" {
			q.namespace = namespace
		}
	}
}

// MatchingLabels lists the objects that have all the given labels, with these
// values.
func MatchingLabels(set map[string]string) ListOption {
	return MatchingLabelsSelector(labels.SelectorFromSet(set))
}

// MatchingLabelsSelector lists the objects whose labels match. Nil is no
// restriction.
func MatchingLabelsSelector(selector labels.Selector) ListOption {
	return func(q *query) {
		if selector != nil && !selector.Empty() {
			q.selectors = append(q.selectors, selector)
		}
	}
}

// ByIndex lists the objects that an index of the store has under a value. A List
// by an index that the store does not have fails, naming those it has.
func ByIndex(index, value string) ListOption {
	return func(q *query) { q.indexed = append(q.indexed, indexValue{index, value}) }
}

// Limit lists no more than n objects; which ones is only determined together with
// Sorted. Zero and less is no limit.
func Limit(n int) ListOption {
	return func(q *query) {
		if n > 0 && (q.limit == 0 || n < q.limit) {
			q.limit = n
		}
	}
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
