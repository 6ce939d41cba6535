package watcher

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/watchlist"
)

// Scope is the part of a collection that a Source lists and watches. About what is
// outside of it a store knows nothing, not even that it does not exist. The zero
// value is the whole collection, or says that no more is known.
type Scope struct {
	// Namespace is the only namespace that is listed. Empty means all of them, or a
	// resource that has none, or that the Source does not say.
	Namespace string
	// LabelSelector and FieldSelector are those of each request, as in
	// metav1.ListOptions. Empty is no restriction.
	LabelSelector, FieldSelector string
}

// String names the restrictions, and is "everything" if there are none.
func (s Scope) String() string {
	var all []string
	if s.Namespace != "" {
		all = append(all, fmt.Sprintf("namespace %q", s.Namespace))
	}
	if s.LabelSelector != "" {
		all = append(all, "labels "+s.LabelSelector)
	}
	if s.FieldSelector != "" {
		all = append(all, "fields "+s.FieldSelector)
	}
	if len(all) == 0 {
		return "everything"
	}
	return strings.Join(all, ", ")
}

// Scoped is a Source that says what it lists. [ListWatch] returns one; other
// sources can implement it, or be given a namespace by [InNamespace].
type Scoped interface {
	Source
	// Scope returns what is listed and watched. It must always be the same.
	Scope() Scope
}

// ScopeOf returns what a source says of itself: the zero Scope if it says nothing.
func ScopeOf(source Source) Scope {
	if scoped, ok := source.(Scoped); ok && !isNil(source) {
		return scoped.Scope()
	}
	return Scope{}
}

// InNamespace returns a source that says that it lists one namespace, where the
// source itself cannot: client-go's cache.ListWatch, and clients other than
// client-go's own. It changes nothing in the requests. What arrives must be of that
// namespace: an object of another one is not accepted by a store, which then is not
// ready and says so.
//
// An empty namespace says nothing, and a nil source stays nil, which [New] refuses.
// InNamespace panics if the source says that it lists another namespace.
func InNamespace(namespace string, source Source) Source {
	if isNil(source) {
		return nil
	}
	scope := ScopeOf(source)
	if scope.Namespace != "" && namespace != "" && scope.Namespace != namespace {
		panic(fmt.Sprintf("watcher: InNamespace(%q) of a source that lists namespace %q", namespace, scope.Namespace))
	}
	if namespace != "" {
		scope.Namespace = namespace
	}
	return &scopedSource{Source: source, scope: scope}
}

type scopedSource struct {
	Source
	scope Scope
}

func (s *scopedSource) Scope() Scope { return s.scope }

// IsWatchListSemanticsUnSupported passes on what the source itself says.
func (s *scopedSource) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.Source)
}

// Scope implements Scoped.
func (s *clientSource[L]) Scope() Scope {
	var opts metav1.ListOptions
	s.apply(&opts)
	return Scope{
		Namespace:     namespaceOf(s.client),
		LabelSelector: opts.LabelSelector,
		FieldSelector: opts.FieldSelector,
	}
}

// namespaceOf returns the namespace that a client was made for, empty if it is all
// of them or cannot be told. Typed clients have a method for it, whose name differs
// in their fakes. Dynamic and metadata clients have only a field, which is read in
// client-go's own: without it their stores would call absent what is in other
// namespaces.
func namespaceOf(client any) string {
	switch c := client.(type) {
	case interface{ GetNamespace() string }:
		return c.GetNamespace()
	case interface{ Namespace() string }:
		return c.Namespace()
	}
	v := reflect.ValueOf(client)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return ""
	}
	if !strings.HasPrefix(v.Elem().Type().PkgPath(), "k8s.io/client-go/") {
		return ""
	}
	field := v.Elem().FieldByName("namespace")
	if field.Kind() != reflect.String {
		return ""
	}
	return field.String()
}

// TypeChecker is a [Sink] that can tell by the type of a list or of a bookmark that
// the source is of other objects than it holds, before any object shows it: a wrong
// source that is empty would be an answer about the right one.
type TypeChecker interface {
	// CheckType returns an error for a list or a bookmark of other objects. It is
	// called as the methods of Sink are.
	CheckType(listOrBookmark runtime.Object) error
}

// checkType asks the sink about the type of a list or a bookmark.
func (w *Watcher) checkType(listOrBookmark runtime.Object) error {
	if sink, ok := w.sink.(TypeChecker); ok {
		return sink.CheckType(listOrBookmark)
	}
	return nil
}
