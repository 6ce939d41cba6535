package safestore

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/internal/versions"
)

// audit is a list of the server that is compared with the set, by names, UIDs and
// versions alone.
type audit struct {
	listed  map[types.NamespacedName]identity
	touched map[types.NamespacedName]struct{} // changed by events since the audit began
}

// identity is which object it is, and in which state.
type identity struct {
	uid     types.UID
	version string
}

// same reports whether two objects of one key are the same one in the same state.
func (i identity) same(other identity) bool { return i.version != "" && i == other }

func identityOf(obj metav1.Object) identity { return identity{obj.GetUID(), obj.GetResourceVersion()} }

// BeginAudit implements watcher.Sink.
func (w *writer[T]) BeginAudit() {
	w.audit = &audit{listed: map[types.NamespacedName]identity{}, touched: map[types.NamespacedName]struct{}{}}
}

// Audit implements watcher.Sink.
func (w *writer[T]) Audit(obj metav1.Object) {
	w.audit.listed[Key(obj)] = identityOf(obj)
}

// EndAudit implements watcher.Sink.
func (w *writer[T]) EndAudit() { w.audit = nil }

// Compare implements watcher.Sink. What events have changed since the list was
// asked for may differ: the set is ahead of the list there, or the list of it.
func (w *writer[T]) Compare() error {
	set := w.store.current.Load().set
	differ, example := 0, ""
	note := func(key types.NamespacedName, how string) {
		if _, ok := w.audit.touched[key]; ok {
			return
		}
		if differ++; example == "" {
			example = fmt.Sprintf("%s %s", key, how)
		}
	}
	for key, held := range set.identities() {
		listed, ok := w.audit.listed[key]
		switch {
		case !ok:
			note(key, "is gone from the server")
		case listed.uid != held.uid:
			note(key, "is another object on the server")
		case !versions.Reached(held.version, listed.version):
			note(key, "is newer on the server")
		}
	}
	for key := range w.audit.listed {
		if _, ok := set.identity(key); !ok {
			note(key, "is missing")
		}
	}
	if differ == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d objects differ from the server's, for example %s", differ, len(w.audit.listed), example)
}

// touch takes note of an event for the audit under way.
func (w *writer[T]) touch(key types.NamespacedName) {
	if w.audit != nil {
		w.audit.touched[key] = struct{}{}
	}
}
