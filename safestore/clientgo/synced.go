package clientgo

import (
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
)

// HasSynced returns a function that reports whether the store is ready now, for
// cache.WaitForCacheSync and whoever else takes a cache.InformerSynced. Unlike
// that of an informer it says false again when the store can no longer be
// trusted. It does not wait. HasSynced panics if store is nil.
func HasSynced[T safestore.Object](store *safestore.Store[T]) cache.InformerSynced {
	if store == nil {
		panic("clientgo: HasSynced with a nil store")
	}
	return func() bool { return isReady(store) }
}

// DoneChecker returns what cache.WaitFor and controllers wait for: it is done once
// the store has been ready, at the call or at any time after it. Its name is
// "SafeStore" and the store's. DoneChecker panics if store is nil.
//
// It goes one way: a channel that is closed cannot be opened again, and it says
// nothing of a store that has been revoked since. It is for starting; work that
// depends on the store runs under the context of its token, from WaitReady.
//
// It stays undone if the store is closed before it was ready: wait with a context
// that ends with the store's.
func DoneChecker[T safestore.Object](store *safestore.Store[T]) cache.DoneChecker {
	if store == nil {
		panic("clientgo: DoneChecker with a nil store")
	}
	c := &doneChecker{name: "SafeStore " + store.Name(), done: make(chan struct{})}
	if isReady(store) { // what a hook would say only a moment later
		close(c.done)
		return c
	}
	var remove func()
	registered := make(chan struct{}) // remove is set
	remove = store.OnReady(func(*token.Token) {
		<-registered
		remove() // so that the hook is called once, and the store forgets the checker
		close(c.done)
	})
	close(registered)
	return c
}

type doneChecker struct {
	name string
	done chan struct{} // closed by the hook
}

// Name implements cache.DoneChecker.
func (c *doneChecker) Name() string { return c.name }

// Done implements cache.DoneChecker.
func (c *doneChecker) Done() <-chan struct{} { return c.done }

// isReady asks the snapshot, not just the token: the bound holds in each read.
func isReady[T safestore.Object](store *safestore.Store[T]) bool {
	_, err := store.Snapshot()
	return err == nil
}
