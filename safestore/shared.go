package safestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Shared is a store for several users who do not know of each other, such as the
// parts of a program that a library serves from one cache. It runs while
// somebody holds it: the first to acquire it starts it, and it ends with the last.
// No user can end it for the others. Make one with [NewShared]; all its methods may
// be called from any goroutine.
type Shared[T Object] struct {
	ctx    context.Context
	create func() (*Store[T], error)

	mu      sync.Mutex
	store   *Store[T] // nil while nobody holds it
	stop    context.CancelCauseFunc
	holders int
	running int       // stores whose Run has not returned
	ended   broadcast // tells that one has
}

// NewShared returns a shared store, not yet running. Each time that it is acquired
// after nobody held it, create makes the store, which must not have been run.
// The end of ctx is the forced stop: whoever holds the store finds it revoked for
// [invalidation.Closed], with ctx's cause. NewShared panics if ctx or create is nil.
func NewShared[T Object](ctx context.Context, create func() (*Store[T], error)) *Shared[T] {
	if ctx == nil || create == nil {
		panic("safestore: NewShared with a nil argument")
	}
	return &Shared[T]{ctx: ctx, create: create}
}

// Acquire returns the store, running, and the function that lets go of it, of which
// only the first call counts. The store is closed when nobody holds it any more,
// also for those who go on using it. Acquire fails if the store cannot be made, and
// after the end of the context that NewShared was given, with its cause.
func (s *Shared[T]) Acquire() (store *Store[T], release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, nil, fmt.Errorf("safestore: the shared store has ended: %w", context.Cause(s.ctx))
	}
	if s.store == nil {
		if err := s.startLocked(); err != nil {
			return nil, nil, err
		}
	}
	s.holders++
	return s.store, sync.OnceFunc(s.release), nil
}

func (s *Shared[T]) startLocked() error {
	store, err := s.create()
	switch {
	case err != nil:
		return err
	case store == nil:
		return errors.New("safestore: a shared store was made without a store, and without an error")
	case store.running.Load():
		return fmt.Errorf("safestore: the shared store %s: %w", store.name, ErrRunTwice)
	}
	ctx, stop := context.WithCancelCause(s.ctx)
	s.store, s.stop = store, stop
	s.running++
	go s.run(ctx, store)
	return nil
}

func (s *Shared[T]) run(ctx context.Context, store *Store[T]) {
	if err := store.Run(ctx); err != nil {
		store.logger().Error(err, "Shared store does not run")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.ended.send()
}

func (s *Shared[T]) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders--; s.holders == 0 {
		s.stop(errUnheld)
		s.store, s.stop = nil, nil
	}
}

var errUnheld = fmt.Errorf("nobody holds the shared store any more: %w", context.Canceled)

// Wait returns when no store that was acquired is running. It may be called while
// others acquire the store, and then returns at a moment at which none is running.
func (s *Shared[T]) Wait() {
	for {
		ended := s.ended.wait()
		s.mu.Lock()
		running := s.running
		s.mu.Unlock()
		if running == 0 {
			return
		}
		<-ended
	}
}
