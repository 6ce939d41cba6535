package safestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// StoreSet is several stores of one type, each under a name, that run together and
// come and go meanwhile: those of the clusters that a program looks after, for
// example, or of namespaces, for which [Namespaces] reads them as one. It has the
// readiness of a [Group] of them. Make one with [NewStoreSet]; all its methods may
// be called from any goroutine.
//
// Stores keep their readiness to themselves: one that is not ready does not keep the
// others from being read, added or removed.
type StoreSet[T Object] struct {
	Readiness // of all stores together

	group   *Group
	create  func(name string) (*Store[T], error)
	members atomic.Pointer[storeMembers[T]] // replaced under mu
	moved   broadcast                       // tells of every change of members and of what is in them

	mu      sync.Mutex                            // held while stores come and go
	run     context.Context                       // under which stores run; nil before Run
	fail    context.CancelCauseFunc               // ends run
	stops   map[*Store[T]]context.CancelCauseFunc // of the stores that were started
	ended   bool                                  // none is added any more
	running sync.WaitGroup
}

// NewStoreSet returns a set of the stores that create makes for each of the names,
// not yet running. create must make another store each time, and must not use the
// set; it is called again for each store that is added. There may be no names to
// begin with: the set is then not ready until a store is added.
//
// NewStoreSet fails without a name or a function, and as [StoreSet.Add] does.
func NewStoreSet[T Object](
	name string, create func(name string) (*Store[T], error), names ...string,
) (*StoreSet[T], error) {
	if create == nil {
		return nil, errors.New("safestore: NewStoreSet without a function that makes stores")
	}
	group, err := NewGroup(name)
	if err != nil {
		return nil, errors.New("safestore: NewStoreSet without a name")
	}
	s := &StoreSet[T]{
		Readiness: group, group: group, create: create,
		stops: map[*Store[T]]context.CancelCauseFunc{},
	}
	s.members.Store((&storeMembers[T]{}).of(name, map[string]*Store[T]{}))
	group.progress.forward(&s.moved)
	for _, one := range names {
		if err := s.Add(one); err != nil {
			group.Close()
			return nil, err
		}
	}
	return s, nil
}

// Add adds the store of a name, and starts it if the set runs. Until it is ready the
// set is not: a token that is ready ends. Add fails without a name, if the set has
// one of that name, if the store cannot be made, and after Run has ended.
func (s *StoreSet[T]) Add(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := s.members.Load()
	switch {
	case name == "":
		return fmt.Errorf("safestore: %s: a name is empty", s.Name())
	case members.stores[name] != nil:
		return fmt.Errorf("safestore: %s has %q already", s.Name(), name)
	case s.ended:
		return fmt.Errorf("safestore: %s has ended", s.Name())
	}
	store, err := s.create(name)
	switch {
	case err != nil:
		return fmt.Errorf("safestore: %s: %q: %w", s.Name(), name, err)
	case store == nil:
		return fmt.Errorf("safestore: %s: %q: there is neither a store nor an error", s.Name(), name)
	case store.running.Load():
		return fmt.Errorf("safestore: %s: %q: %w", s.Name(), name, ErrRunTwice)
	}
	// In this order: a set that is ready has all stores that can be read of it.
	if err := s.group.Add(store); err != nil {
		return err
	}
	stores := maps.Clone(members.stores)
	stores[name] = store
	s.members.Store(members.of(s.Name(), stores))
	store.progress.forward(&s.moved)
	s.moved.send()
	if s.run != nil {
		s.startLocked(store)
	}
	return nil
}

// Remove ends the store of a name, for [invalidation.Closed], and reports whether
// there was one. When it returns the set is one without it, and ready if only that
// one was waited for; the store clears away by itself, and Run waits for it. A store
// that is added under the same name later begins with nothing.
func (s *StoreSet[T]) Remove(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := s.members.Load()
	store := members.stores[name]
	if store == nil {
		return false
	}
	stores := maps.Clone(members.stores)
	delete(stores, name)
	next := members.of(s.Name(), stores)
	next.steps += store.current.Load().steps + 2 // what it held is as good as listed anew
	store.progress.forget(&s.moved)
	// In this order: nobody finds the set ready who looks for this store in it.
	s.members.Store(next)
	s.group.Remove(store.Name())
	s.moved.send()
	cause := fmt.Errorf("%q was removed from %s", name, s.Name())
	if stop := s.stops[store]; stop != nil {
		stop(cause)
		delete(s.stops, store)
	} else {
		store.close(cause)
	}
	return true
}

// Store returns the store of a name, and whether there is one.
func (s *StoreSet[T]) Store(name string) (*Store[T], bool) {
	store, ok := s.members.Load().stores[name]
	return store, ok
}

// Names returns the names of the stores that there are, sorted.
func (s *StoreSet[T]) Names() []string { return slices.Clone(s.members.Load().names) }

// Members returns the stores, in the order in which they were added.
func (s *StoreSet[T]) Members() []Readiness { return s.group.Members() }

// Sync is a barrier over all stores: see [Store.Sync]. Stores that are removed
// meanwhile are not waited for.
func (s *StoreSet[T]) Sync(ctx context.Context) error {
	return s.each(func(store *Store[T]) error { return store.Sync(ctx) })
}

// each calls f with all stores at the same time. The errors of those that were
// removed meanwhile do not count.
func (s *StoreSet[T]) each(f func(*Store[T]) error) error {
	members := s.members.Load()
	if len(members.names) == 0 {
		return s.NotReady()
	}
	errs := make([]error, len(members.names))
	var all sync.WaitGroup
	for i, name := range members.names {
		all.Go(func() { errs[i] = f(members.stores[name]) })
	}
	all.Wait()
	now := s.members.Load()
	for i, name := range members.names {
		if now.stores[name] != members.stores[name] {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// Snapshot returns the current snapshots of all stores, as [Group.Snapshot] does: get
// that of one of them with [Store.In].
func (s *StoreSet[T]) Snapshot() (*JointSnapshot, error) { return s.group.Snapshot() }

// WaitSnapshot returns what Snapshot does, waiting until all stores are ready.
func (s *StoreSet[T]) WaitSnapshot(ctx context.Context) (*JointSnapshot, error) {
	return s.group.WaitSnapshot(ctx)
}

// ReadySnapshot returns the snapshots of those stores that are ready, as
// [Group.ReadySnapshot] does.
func (s *StoreSet[T]) ReadySnapshot() (*JointSnapshot, error) { return s.group.ReadySnapshot() }
