package safestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// startGrace is how long a read waits for Run to be called: as long as the
// goroutine that will call it may need to get going. A store that nobody drives
// is an error, not a hang (C8, C14).
const startGrace = 2 * time.Second

// Snapshot returns the current view, without waiting. It fails with a
// [*NotReadyError] if the store is not ready.
func (s *Store[T]) Snapshot() (*Snapshot[T], error) {
	if snapshot, ok := s.ready(); ok {
		return snapshot, nil
	}
	return nil, s.notReady(nil)
}

// ready returns the current snapshot if it can be vouched for. One load gives
// the objects, the token and the proof: nothing can come between asking and
// reading.
func (s *Store[T]) ready() (*Snapshot[T], bool) {
	for snapshot := s.current.Load(); ; {
		ready := snapshot.token.State() == token.Ready
		if ready && s.fresh(snapshot) {
			return snapshot, true
		}
		// It may have been replaced since it was loaded, without a gap or by one
		// that is proven.
		newer := s.current.Load()
		if newer == snapshot {
			if ready {
				s.revokeStale(snapshot)
			}
			return nil, false
		}
		snapshot = newer
	}
}

// Stale returns the last snapshot, current or not, and how old it may be: the
// age of the newest proof that it held all there was. [Store.NotReady] says why it
// is not current. It is for those who would rather have old data than none, and
// know it. It returns nil if there never was
// a complete set, and if the data was dropped because the server no longer
// grants it or serves it.
func (s *Store[T]) Stale() (*Snapshot[T], time.Duration) {
	snapshot := s.current.Load()
	if !snapshot.complete {
		return nil, 0
	}
	return snapshot, snapshot.Age()
}

// WaitReady waits until the store is ready and returns the token, following
// re-arming from one generation to the next. It fails with a [*NotReadyError]
// when ctx ends, when the store is closed, and, after two seconds, if Run is not
// called.
//
// A ctx that is over fails every read that takes one, also of a store that is ready:
// what the work is for is over. So work under a context from [token.Token.Tie] never
// goes on with the data of the next generation.
func (s *Store[T]) WaitReady(ctx context.Context) (*token.Token, error) {
	snapshot, err := s.wait(ctx)
	if err != nil {
		return nil, err
	}
	return snapshot.token, nil
}

// WaitSnapshot returns the current view, waiting until the store is ready. Its
// errors are those of [Store.WaitReady].
func (s *Store[T]) WaitSnapshot(ctx context.Context) (*Snapshot[T], error) { return s.wait(ctx) }

// Get returns the object of that key from the current snapshot, waiting until
// the store is ready. Its errors are those of [Store.WaitReady] and
// [Snapshot.Get]: an API NotFound error (apierrors.IsNotFound) if the object does
// not exist. The object is shared and must not be changed.
func (s *Store[T]) Get(ctx context.Context, key types.NamespacedName) (T, error) {
	snapshot, err := s.wait(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return snapshot.Get(key)
}

// GetDeepCopy is Get with a copy that is the caller's to change.
func (s *Store[T]) GetDeepCopy(ctx context.Context, key types.NamespacedName) (T, error) {
	return deepCopy(s.Get(ctx, key))
}

// List returns the objects that match all options from the current snapshot,
// waiting until the store is ready. Its errors are those of [Store.WaitReady] and
// [Snapshot.List]. The objects are shared and must not be changed, unless [DeepCopy]
// is one of the options.
func (s *Store[T]) List(ctx context.Context, opts ...ListOption) ([]T, error) {
	snapshot, err := s.wait(ctx)
	if err != nil {
		return nil, err
	}
	return snapshot.List(opts...)
}

// wait returns a snapshot that was current during the call, for work that is not over.
func (s *Store[T]) wait(ctx context.Context) (*Snapshot[T], error) {
	if ctx == nil {
		panic("safestore: a read with a nil context: use context.Background()")
	}
	for {
		snapshot, ok := s.ready()
		// In this order: a context that ends with a token is over by the time that
		// the next generation is there, so that work never gets it that was cut before.
		if ctx.Err() != nil {
			return nil, s.gaveUp(ctx)
		}
		if ok {
			return snapshot, nil
		}
		if !s.waitStarted(ctx) {
			return nil, s.gaveUp(ctx)
		}
		switch _, err := s.tokens.Wait(ctx); {
		case errors.Is(err, token.ErrClosed):
			return nil, s.notReady(nil) // the last revocation says why
		case err != nil:
			return nil, s.gaveUp(ctx)
		}
	}
}

// waitStarted reports whether Run has been called, giving it a moment.
func (s *Store[T]) waitStarted(ctx context.Context) bool {
	select {
	case <-s.started:
		return true
	default:
	}
	timer := time.NewTimer(startGrace)
	defer timer.Stop()
	select {
	case <-s.started:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}

// endOf returns why ctx ended, so that both its error and its cause are found in
// it; nil if it has not.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// gaveUp explains why a reader got nothing that has stopped waiting: for the end of
// its context, be the store ready or not, or because Run was not called.
func (s *Store[T]) gaveUp(ctx context.Context) *NotReadyError {
	if snapshot, ok := s.ready(); ok && ctx.Err() != nil {
		e := &NotReadyError{Store: s.name, Generation: snapshot.token.Generation(), Ready: true, Waited: endOf(ctx)}
		e.started = true
		return e
	}
	return s.notReady(endOf(ctx))
}

// notReady explains why there is nothing to read. waited is why the reader no
// longer waits, nil if it did not.
func (s *Store[T]) notReady(waited error) *NotReadyError {
	e := &NotReadyError{Store: s.name, Generation: 1, Revocation: s.last.Load(), Waited: waited}
	if r := s.current.Load().dropped; r != nil && (e.Revocation == nil || r.Generation > e.Revocation.Generation) {
		e.Revocation = r // data is dropped for it, and the token is about to end
	}
	if r := e.Revocation; r != nil {
		// Not the current token's number, which may be older or newer than r.
		e.Generation = r.Generation + 1
		if r.Reason == invalidation.Closed {
			e.Generation = r.Generation
		}
	}
	since := s.since.Load()
	if since == nil {
		return e
	}
	e.started, e.Since = true, *since
	status := s.watcher.Status()
	e.Phase, e.Progress, e.LastError = status.Phase, status.Progress, status.LastError
	if status.Proof != "" {
		e.Phase += ", " + status.Proof
	}
	if status.Delay != "" {
		e.Phase += ", " + status.Delay
	}
	return e
}
