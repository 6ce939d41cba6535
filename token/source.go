package token

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// ErrClosed is wrapped by what [Source.Wait] returns once the source is closed.
var ErrClosed = errors.New("token source closed")

// Source arms tokens, one at a time, and is the only one to move them. Make one
// with [NewSource].
//
//   - To be ready: get Current before the work that leads to readiness begins,
//     and name that token in Ready when the work is done. If it was revoked
//     meanwhile, the work proves nothing about the token that came after it.
//   - To revoke: name the token that is meant. A fresh one is current when
//     Revoke returns.
//   - To wait for readiness, whichever generation brings it: Wait.
type Source struct {
	parent context.Context

	// current is the newest token. Written under mu, read without it.
	current atomic.Pointer[Token]

	mu     sync.Mutex
	closed bool // under mu: no token is armed any more
}

// NewSource returns a source whose first token, generation 1, is Pending. The
// contexts of all its tokens derive from parent: the end of parent ends the
// current token with parent's cause, and all that might follow it. It panics if
// parent is nil.
func NewSource(parent context.Context) *Source {
	if parent == nil {
		panic("token: NewSource with a nil context")
	}
	s := &Source{parent: parent}
	s.current.Store(newToken(parent, 1))
	return s
}

// Current returns the newest token. After Close it is the last one, revoked.
func (s *Source) Current() *Token { return s.current.Load() }

// Ready moves t from Pending to Ready and wakes those who wait for it. It
// reports whether it did so: false if t is not the current token, or not
// Pending.
func (s *Source) Ready(t *Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t == nil || t != s.current.Load() || t.State() != Pending {
		return false
	}
	t.granted.Store(true)
	close(t.ready)
	return true
}

// Revoke ends t with the given cause and arms the next token, which it returns
// with true. If t is not the current token, or the source is closed, nothing
// happens: it returns the current token and false. It panics if cause is nil,
// since an end that nobody can explain is what this package is there to
// prevent.
func (s *Source) Revoke(t *Token, cause error) (*Token, bool) {
	if cause == nil {
		panic("token: Revoke with a nil cause")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.current.Load()
	if s.closed || t != current {
		return current, false
	}
	// Replace, then cancel. In the other order a waiter woken by the
	// cancellation could find the revoked token still current, and would have
	// to spin until it is replaced. Both are done when Revoke returns.
	fresh := newToken(s.parent, t.generation+1)
	s.current.Store(fresh)
	t.end(cause)
	return fresh, true
}

// Succeed ends t like Revoke, but the token that follows is ready from its
// beginning: at no moment in between is there none that is ready. publish is
// called with the fresh token before that is current, to put in place what it
// stands for; handOver when it is current and t has not ended, for what depends on
// t to go on to the fresh token. Neither may move the source. Succeed returns the
// current token and false, without calling them, if t is not current or not Ready.
func (s *Source) Succeed(t *Token, cause error, publish, handOver func(fresh *Token)) (*Token, bool) {
	if cause == nil {
		panic("token: Succeed with a nil cause")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.current.Load()
	if s.closed || t != current || t.State() != Ready {
		return current, false
	}
	fresh := newToken(s.parent, t.generation+1)
	fresh.granted.Store(true)
	close(fresh.ready)
	publish(fresh)
	s.current.Store(fresh)
	handOver(fresh)
	t.end(cause)
	return fresh, true
}

// Close ends the current token with the given cause and arms no other. Only the
// first call counts. It panics if cause is nil.
func (s *Source) Close(cause error) {
	if cause == nil {
		panic("token: Close with a nil cause")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.current.Load().end(cause)
}

// Wait returns a token that was ready during the call, following re-arming
// from one generation to the next for as long as it takes. A ready token is
// returned even if ctx is over: who must not go on then looks at ctx as well.
// Otherwise Wait fails with ctx's cause when ctx ends first, and with [ErrClosed],
// wrapping the cause of the last token, when the source is closed or its parent is
// over.
func (s *Source) Wait(ctx context.Context) (*Token, error) {
	for {
		t := s.current.Load()
		if t.State() == Ready {
			return t, nil
		}
		select {
		case <-t.ready:
			// It may be revoked already, before this goroutine ran. Then a fresh
			// token is current, or the source is closed.
		case <-t.ctx.Done():
			if s.endsWith(t) {
				return nil, fmt.Errorf("%w: %w", ErrClosed, t.Cause())
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// endsWith reports whether t is revoked and no token will follow it.
func (s *Source) endsWith(t *Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t == s.current.Load() && t.State() == Revoked
}
