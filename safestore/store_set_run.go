package safestore

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
)

// Run runs the stores, and those that are added, until ctx ends. It returns what
// [Store.Run] does, when nothing of them is left running. A second call fails with
// [ErrRunTwice]. If a store cannot be run, because somebody else runs it, the set
// ends with that error.
func (s *StoreSet[T]) Run(ctx context.Context) error {
	run, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if !s.start(run, fail) {
		return fmt.Errorf("safestore: %s: %w", s.Name(), ErrRunTwice)
	}
	<-run.Done()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
	s.group.closeFor(context.Cause(run))
	s.group.waitForHooks(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(run)
}

func (s *StoreSet[T]) start(run context.Context, fail context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		return false
	}
	s.run, s.fail = run, fail
	for _, store := range s.members.Load().stores {
		s.startLocked(store)
	}
	return true
}

func (s *StoreSet[T]) startLocked(store *Store[T]) {
	ctx, stop := context.WithCancelCause(s.run)
	s.stops[store] = stop
	s.running.Go(func() {
		defer stop(nil)
		if err := store.Run(ctx); err != nil {
			s.fail(err)
		}
	})
}

func (s *StoreSet[T]) logger() klog.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return klog.Background()
	}
	return klog.FromContext(s.run).WithValues("store", s.Name())
}
