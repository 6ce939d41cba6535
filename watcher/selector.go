package watcher

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// WithLabelSelector is for [ListWatch], and restricts the Source to the objects
// whose labels match. The server selects: an object that stops matching is to the
// Source one that is deleted, and it is added when it matches again.
//
// Nil is no restriction; labels.Nothing selects nothing. Several selectors, of
// labels and fields, restrict together. A Source for Options.AuditSource needs the
// same ones.
func WithLabelSelector(selector labels.Selector) func(*metav1.ListOptions) {
	if selector == nil {
		return unrestricted
	}
	added := text(selector, "none,!none")
	return func(opts *metav1.ListOptions) { opts.LabelSelector = both(opts.LabelSelector, added) }
}

// WithFieldSelector is as [WithLabelSelector], for fields: those that the server
// knows how to select by, which depends on the resource. It refuses others with a
// bad request, which then is why the store is not ready. Nil is no restriction;
// fields.Nothing selects nothing.
func WithFieldSelector(selector fields.Selector) func(*metav1.ListOptions) {
	if selector == nil {
		return unrestricted
	}
	added := text(selector, "metadata.name=none,metadata.name!=none") // every resource has names
	return func(opts *metav1.ListOptions) { opts.FieldSelector = both(opts.FieldSelector, added) }
}

func unrestricted(*metav1.ListOptions) {}

// text returns a selector as the server takes it. Selectors that match nothing
// have an empty text (labels.Nothing, and with it what
// metav1.LabelSelectorAsSelector makes of nil), which would select everything:
// a contradiction stands in for them.
func text(selector interface {
	Empty() bool
	String() string
}, contradiction string) string {
	s := selector.String()
	if s == "" && !selector.Empty() {
		return contradiction
	}
	return s
}

// both returns a selector that restricts as much as two do.
func both(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}
