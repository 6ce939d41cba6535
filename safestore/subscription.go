package safestore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/kube-safestore/kube-safestore/token"
)

// ErrSubscribedTwice is what the second of two loops over one [Subscription] at
// the same time ends with.
var ErrSubscribedTwice = errors.New("the subscription is in use")

// errLeft is how a subscription ends whose loop was left.
var errLeft = errors.New("its loop was left")

// Subscription is somebody who wants to hear of changes. Make one with
// [Store.Subscribe]; all its methods may be called from any goroutine.
//
//   - To hear of changes, in the calling goroutine: range over Changes, or give
//     Handle a function.
//   - To know that they have been dealt with: CaughtUp and WaitCaughtUp.
//   - To see how far behind it is: Status.
//
// The store computes the changes when they are asked for, between what the
// subscriber got last and the newest snapshot. A slow subscriber gets several
// events at once, as one change for each object; one that is blocked keeps in
// memory what it got last and the snapshot that it is being handed, which share
// all that is alike, and nobody waits for it (C41).
type Subscription[T Object] struct {
	store feed[T]
	name  string
	query query

	mu       sync.Mutex
	running  bool         // a loop is
	ended    error        // how the last loop did; nil if none has, or one is running
	caughtUp *token.Token // newest one whose set was handed out; nil if there is none, and between loops
	changes  uint64       // handed out by this loop, or the last one
	behind   time.Time    // since when, at most, what is being handed out has waited; zero if nothing is

	progress broadcast // tells of every change of ended and caughtUp
}

// Subscribe returns a subscription to the changes of the objects that all options
// match: an object that begins to match is Added, and one that no longer does is
// Deleted. [InNamespace], [MatchingLabels] and [MatchingLabelsSelector] can be
// used; with other options the loop over it ends at once, with an error.
//
// The name is for people, in logs and status, and should tell subscriptions of one
// store apart. A subscription costs nothing until its changes are asked for, and
// need not be closed.
func (s *Store[T]) Subscribe(name string, opts ...ListOption) *Subscription[T] {
	return subscribe[T](s, name, opts)
}

func subscribe[T Object](to feed[T], name string, opts []ListOption) *Subscription[T] {
	return &Subscription[T]{store: to, name: name, query: queryOf(opts)}
}

// Changes returns the changes as they come. A change counts as dealt with when
// the loop's body has finished. Each loop begins with nothing: the first thing
// that it gets is the set as it is then.
//
// The loop ends with an error, the only one that it gets, when
//
//   - ctx ends: context.Canceled or context.DeadlineExceeded, and ctx's cause, are
//     found in it;
//   - the store is closed, which is told as Revoked before, or Run is not called
//     within a short while: a [*NotReadyError];
//   - another loop over the same subscription is running: [ErrSubscribedTwice].
//
// Leaving the loop, by any means, ends the subscription and frees all that it
// held.
func (s *Subscription[T]) Changes(ctx context.Context) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		err := s.run(ctx, func(c Change[T]) error {
			if !yield(c, nil) {
				return errLeft
			}
			return nil
		})
		if err != errLeft {
			yield(Change[T]{}, err)
		}
	}
}

// Handle calls f with each change, one at a time, in the calling goroutine. It
// returns nil when ctx ends, as [Store.Run] does, and is best given the same one: a
// store that ends before ctx does is an error. The other errors are those of
// [Subscription.Changes], and an error of f, which ends the subscription, wrapped
// with the change that it was about. A panic of f goes through to the caller, and
// so ends the program, as with client-go's handlers, unless f is made by
// [Isolate]. Handle panics if f is nil.
func (s *Subscription[T]) Handle(ctx context.Context, f func(Change[T]) error) error {
	if f == nil {
		panic("safestore: Handle with a nil function")
	}
	var failed error
	err := s.run(ctx, func(c Change[T]) error {
		if err := f(c); err != nil {
			failed = fmt.Errorf("safestore: subscription %q of %s: %v: %w", s.name, s.store.Name(), c, err)
		}
		return failed
	})
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	case failed != nil:
		s.report(failed)
	}
	return err
}

// report logs how a handler failed.
func (s *Subscription[T]) report(err error) {
	log := s.store.logger()
	var panicked *panicError
	if errors.As(err, &panicked) {
		log = log.WithValues("stack", string(panicked.stack))
	}
	log.Error(err, "Subscription ended", "subscription", s.name)
}

// run calls deliver with each change, until it fails or there are no more.
func (s *Subscription[T]) run(ctx context.Context, deliver func(Change[T]) error) (err error) {
	if !s.begin() {
		return fmt.Errorf("safestore: subscription %q of %s: %w", s.name, s.store.Name(), ErrSubscribedTwice)
	}
	err = errLeft // if it panics
	defer func() { s.end(err) }()
	if err := s.Err(); err != nil {
		return err
	}
	if err := s.store.covers(s.query.namespace); err != nil {
		return err
	}
	if !s.store.waitStarted(ctx) {
		return s.store.unready(endOf(ctx))
	}
	return (&stream[T]{Subscription: s, deliver: deliver}).run(ctx)
}

// Err returns why the options of the subscription cannot be subscribed to, with which
// its loops fail; nil if they can.
func (s *Subscription[T]) Err() error {
	switch q := s.query; {
	case q.err != nil:
		return q.err
	case len(q.indexed) > 0, q.limit != 0, q.sorted, q.copied:
		return fmt.Errorf("safestore: subscription %q of %s: only namespaces and labels can be subscribed to",
			s.name, s.store.Name())
	default:
		return nil
	}
}

func (s *Subscription[T]) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return false
	}
	s.running, s.ended, s.changes = true, nil, 0
	s.store.loops().add(s)
	return true
}

func (s *Subscription[T]) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.ended, s.caughtUp, s.behind = false, err, nil, time.Time{}
	s.store.loops().remove(s)
	s.progress.send()
}

// delivered takes note of a change that the subscriber has dealt with.
func (s *Subscription[T]) delivered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
}

// lags takes note of since when what is being handed out has waited.
func (s *Subscription[T]) lags(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = since
}

// reached takes note of a generation whose set the subscriber has dealt with.
func (s *Subscription[T]) reached(t *token.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caughtUp = t
	s.progress.send()
}

// CaughtUp returns the token of the generation whose whole set the subscriber has
// dealt with: the loop's body, or the handler, has finished with InitDone, and so
// with everything before. It returns nil if there is none, or the token is over,
// or no loop is running (C15). Changes since then may be under way: see
// [SubscriptionStatus].
func (s *Subscription[T]) CaughtUp() *token.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.caughtUp == nil || s.caughtUp.State() != token.Ready {
		return nil
	}
	return s.caughtUp
}

// WaitCaughtUp waits until [Subscription.CaughtUp] returns a token, and returns
// it. It follows re-arming from one generation to the next, and waits for a loop
// to begin. It fails when the loop has ended, with its error, and when ctx ends or
// the store is closed, with a [*NotReadyError] if the store is not ready.
func (s *Subscription[T]) WaitCaughtUp(ctx context.Context) (*token.Token, error) {
	for {
		changed := s.progress.wait()
		if t := s.CaughtUp(); t != nil {
			return t, nil
		}
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		if ended != nil {
			return nil, fmt.Errorf("safestore: subscription %q of %s has ended: %w", s.name, s.store.Name(), ended)
		}
		select {
		case <-changed:
		case <-s.store.end():
			return nil, s.store.unready(nil)
		case <-ctx.Done():
			if _, ready := s.store.ready(); !ready {
				return nil, s.store.unready(endOf(ctx))
			}
			return nil, fmt.Errorf("safestore: subscription %q of %s has not caught up: %w", s.name, s.store.Name(), endOf(ctx))
		}
	}
}
