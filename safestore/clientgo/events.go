package clientgo

import (
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// EventHandler returns a function for [safestore.Subscription.Handle] that calls a
// handler as client-go's informers do, with differences that are for the better:
//
//   - OnDelete always gets an object of type T, the last one that the handler got,
//     never a cache.DeletedFinalStateUnknown. Code that looks for one still works.
//   - An object that has taken the name of another one is an OnDelete and an OnAdd,
//     never an OnUpdate.
//   - OnUpdate is not called when nothing has changed: there is no resync.
//   - When the store is revoked nothing is called, and when it is ready again only
//     what is different then is told.
//
// OnAdd is told that it is the initial list for all objects before the first
// [safestore.InitDone], as an informer's handlers are once in its life. In place of an informer's HasSynced
// ask [safestore.Subscription.CaughtUp].
//
// The function is for one subscription. EventHandler panics if h is nil.
func EventHandler[T safestore.Object](h cache.ResourceEventHandler) func(safestore.Change[T]) error {
	if h == nil {
		panic("clientgo: EventHandler with a nil handler")
	}
	initial := true
	return func(c safestore.Change[T]) error {
		switch c.Type {
		case safestore.InitDone:
			initial = false
		case safestore.Added:
			h.OnAdd(c.New, initial)
		case safestore.Updated:
			h.OnUpdate(c.Old, c.New)
		case safestore.Deleted:
			h.OnDelete(c.Old)
		}
		return nil
	}
}
