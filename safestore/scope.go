package safestore

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// ErrOutOfScope is found in the error of a read that asks for what the store would
// not hold if it existed: a key of another namespace than the one that its source
// lists, a key without namespace of a resource that has them, or the other way
// round. The error says what the scope is. It is neither a NotFound error nor
// [ErrNotReady]: the store does not know, and waiting does not help.
var ErrOutOfScope = errors.New("out of the store's scope")

// scope is what a store can speak about, as its source says. Nil is everything.
type scope struct {
	said watcher.Scope
	keys fields.Requirements // those of the field selector
}

func scopeOf(source watcher.Source) *scope {
	s := &scope{said: watcher.ScopeOf(source)}
	if selector, err := fields.ParseSelector(s.said.FieldSelector); err == nil { // else the server refuses it
		s.keys = selector.Requirements()
	}
	return s
}

// covers returns why nothing is known of a key, or of a namespace if the key has no
// name; nil if it is in the scope.
func (s *scope) covers(key types.NamespacedName) error {
	if s == nil || key == (types.NamespacedName{}) {
		return nil
	}
	inside := (s.said.Namespace == "" || key.Namespace == s.said.Namespace) &&
		(key.Name == "" || s.selects("metadata.name", key.Name)) &&
		(key.Namespace == "" || s.selects("metadata.namespace", key.Namespace))
	if !inside {
		return outOfScope(key, s.said)
	}
	return nil
}

// selects reports whether the field selector lets a value of a field through.
func (s *scope) selects(field, value string) bool {
	for _, r := range s.keys {
		if r.Field == field && (r.Value == value) == (r.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// admit returns an error for an object that the source should not have sent.
func (s *scope) admit(obj metav1.Object) error {
	if s == nil || s.said.Namespace == "" || obj.GetNamespace() == s.said.Namespace {
		return nil
	}
	return fmt.Errorf("%T %s: the source lists namespace %q", obj, Key(obj), s.said.Namespace)
}

// selected names the selectors that an object must match to be found, empty if
// there are none.
func (s *scope) selected() string {
	if s == nil || s.said.LabelSelector == "" && s.said.FieldSelector == "" {
		return ""
	}
	return watcher.Scope{LabelSelector: s.said.LabelSelector, FieldSelector: s.said.FieldSelector}.String()
}

// outOfScope is the error about a key, or about a namespace if it has no name. The
// scope is what the source says, or what the objects show.
func outOfScope(key types.NamespacedName, scope any) error {
	what := fmt.Sprintf("key %q", key)
	switch {
	case key.Name == "":
		what = fmt.Sprintf("namespace %q", key.Namespace)
	case key.Namespace == "":
		what = fmt.Sprintf("key %q without namespace", key.Name)
	}
	return fmt.Errorf("safestore: %s is %w: %v", what, ErrOutOfScope, scope)
}

// covers returns why nothing is known of a key that is not held, or of a namespace
// if the key has no name; nil if there is no such thing. What the source does not say
// the objects may show: resources either have namespaces or not. Where nothing is
// held nothing exists, in no namespace and in any.
func (s *Snapshot[T]) covers(key types.NamespacedName) error {
	if err := s.only.covers(key); err != nil {
		return err
	}
	if err := s.scope.covers(key); err != nil {
		return err
	}
	switch with, without := s.set.namespaced(); {
	case key.Namespace == "" && with && !without:
		return outOfScope(key, "its objects have namespaces")
	case key.Namespace != "" && without && !with:
		return outOfScope(key, "its objects have no namespace")
	}
	return nil
}

// namespaced reports whether there are objects that have a namespace, and whether
// there are others.
func (c indexedSet[T]) namespaced() (with, without bool) {
	with, without = c.objects.namespaced()
	badWith, badWithout := c.bad.namespaced()
	return with || badWith, without || badWithout
}

func (o objects[T]) namespaced() (with, without bool) {
	namespaces := o.namespaces.Len()
	if _, without = o.namespaces.Get(""); without {
		namespaces--
	}
	return namespaces > 0, without
}
