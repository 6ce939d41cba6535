package safestore

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// This file compares what the server shows with the set, for the watcher's proofs. A
// key that changed meanwhile is compared by versions; it is never excused.

// identity is which object it is, and in which state.
type identity struct {
	uid     types.UID
	version string
}

// same reports whether two objects of one key are the same one in the same state.
func (i identity) same(other identity) bool { return i.version != "" && i == other }

func identityOf(obj metav1.Object) identity { return identity{obj.GetUID(), obj.GetResourceVersion()} }

// memory is what was deleted since the watcher asked for it to be remembered, by key:
// the UID of the newest object that is gone.
type memory map[types.NamespacedName]types.UID

// Remember implements watcher.Sink.
func (w *writer[T]) Remember(deletions bool) {
	switch {
	case !deletions:
		w.deleted = nil
	case w.deleted == nil:
		w.deleted = memory{}
	}
}

// note takes down that an object was deleted.
func (m memory) note(key types.NamespacedName, uid types.UID) {
	if m != nil {
		m[key] = uid
	}
}

// explains reports whether an object that is not in the set was deleted from it. Its
// UID is not given to another one.
func (m memory) explains(key types.NamespacedName, uid types.UID) bool {
	deleted, ok := m[key]
	return ok && uid != "" && deleted == uid
}

// Reflects implements watcher.Sink.
func (w *writer[T]) Reflects(event watch.EventType, received runtime.Object) bool {
	obj, err := meta.Accessor(received)
	if err != nil {
		return false
	}
	key, shown := Key(obj), identityOf(obj)
	held, exists := w.store.current.Load().set.identity(key)
	switch {
	case !exists:
		return event == watch.Deleted || w.deleted.explains(key, shown.uid)
	case held.uid != shown.uid:
		return versions.Older(shown.version, held.version)
	case event == watch.Deleted:
		return versions.Older(shown.version, held.version) && shown.uid == ""
	default:
		return versions.Reached(held.version, shown.version)
	}
}

// Check implements watcher.Sink.
func (w *writer[T]) Check(list watcher.Sample, version string) watcher.Agreement {
	set := w.store.current.Load().set
	if list.Version == version && list.Count >= 0 && list.Count != int64(set.count()) {
		return watcher.Contradicts
	}
	if list.Object == nil {
		return watcher.Agrees
	}
	key := Key(list.Object)
	held, exists := set.identity(key)
	return w.compare(key, held, exists, identityOf(list.Object), list.Version, version)
}

// compare compares an object of the set, complete at a version, with the same one of a
// list at its own version.
func (w *writer[T]) compare(
	key types.NamespacedName, held identity, exists bool, shown identity, listed, version string,
) watcher.Agreement {
	switch {
	case exists && held == shown:
		return watcher.Agrees
	case exists && versions.Older(listed, held.version):
		return watcher.Agrees // changed since
	case !exists && w.deleted.explains(key, shown.uid):
		return watcher.Agrees
	case versions.Reached(version, shown.version):
		return watcher.Contradicts
	default:
		return watcher.Awaits
	}
}

// audit is a list of the server's that is compared with the set.
type audit[T Object] struct {
	listed   map[types.NamespacedName]identity
	contents map[types.NamespacedName]T // as they would be kept, where versions tell nothing
	changes  int                        // made to the set before it began
}

// BeginAudit implements watcher.Sink.
func (w *writer[T]) BeginAudit() {
	w.audit = &audit[T]{
		listed:   map[types.NamespacedName]identity{},
		contents: map[types.NamespacedName]T{},
		changes:  w.changes,
	}
}

// Audit implements watcher.Sink.
func (w *writer[T]) Audit(received runtime.Object) error {
	obj, err := meta.Accessor(received)
	if err != nil {
		return err
	}
	key, shown := Key(obj), identityOf(obj)
	w.audit.listed[key] = shown
	if w.ordered && shown.version != "" {
		return nil
	}
	own, err := w.object(received)
	if err != nil {
		return err
	}
	// Of what cannot be kept the key is all there is to compare.
	if kept, err := w.store.keep(own); err == nil {
		w.audit.contents[key] = kept
	}
	return nil
}

// EndAudit implements watcher.Sink.
func (w *writer[T]) EndAudit() { w.audit = nil }

// Compare implements watcher.Sink.
func (w *writer[T]) Compare(listed, version string) (watcher.Agreement, error) {
	set := w.store.current.Load().set
	var found findings
	for key, held := range set.identities() {
		if _, ok := w.audit.listed[key]; ok {
			continue
		}
		switch {
		case versions.Older(listed, held.version): // created since
		case versions.Reached(version, listed):
			found.note(watcher.Contradicts, key, "is gone from the server")
		default:
			found.note(watcher.Awaits, key, "is gone from the server")
		}
	}
	for key, shown := range w.audit.listed {
		held, exists := set.identity(key)
		how := "is another one on the server"
		if !exists {
			how = "is missing"
		}
		if contents, ok := w.audit.contents[key]; ok {
			if obj, ok := set.objects.get(key); !ok || !sameContents(contents, obj) {
				found.note(watcher.Contradicts, key, how)
			}
			continue
		}
		found.note(w.compare(key, held, exists, shown, listed, version), key, how)
	}
	if found.worst == watcher.Contradicts && w.changes != w.audit.changes && (listed == "" || !w.ordered) {
		found.worst = watcher.Undecided // nothing tells which is newer
	}
	if found.worst == watcher.Agrees {
		w.audited = versions.Newest(listed, w.audited)
	}
	return found.worst, found.err(len(w.audit.listed))
}

// sameContents reports whether two objects say the same. Whether they name their own kind
// depends on how they came.
func sameContents[T Object](a, b T) bool {
	return equality.Semantic.DeepEqual(withoutKind(a), withoutKind(b))
}

func withoutKind(obj Object) runtime.Object {
	nameless := obj.DeepCopyObject()
	nameless.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return nameless
}

// findings are the differences that a comparison has found.
type findings struct {
	worst   watcher.Agreement
	differ  int
	example string
}

func (f *findings) note(a watcher.Agreement, key types.NamespacedName, how string) {
	if a == watcher.Agrees {
		return
	}
	if f.differ++; f.example == "" || a > f.worst {
		f.example = fmt.Sprintf("%s %s", key, how)
	}
	f.worst = max(f.worst, a)
}

func (f *findings) err(listed int) error {
	if f.worst == watcher.Agrees {
		return nil
	}
	return fmt.Errorf("%d of %d objects differ from the server's, for example %s", f.differ, listed, f.example)
}
