package token

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewSourceStartsPending(t *testing.T) {
	s := NewSource(t.Context())
	assert.EqualValues(t, 1, s.Current().Generation())
	assert.Equal(t, Pending, s.Current().State())
}

// A late caller names the token it means and cannot act on a newer one.
func TestLateCallersActOnNothing(t *testing.T) {
	s := NewSource(t.Context())
	old := s.Current()
	fresh, ok := s.Revoke(old, errTest)
	require.True(t, ok)

	assert.False(t, s.Ready(old), "the list that began under the old token is done")
	again, ok := s.Revoke(old, errTest)
	assert.False(t, ok)
	assert.Same(t, fresh, again)
	assert.Equal(t, Pending, fresh.State())

	assert.False(t, s.Ready(nil))
	_, ok = s.Revoke(nil, errTest)
	assert.False(t, ok)
	assert.False(t, s.Ready(NewSource(t.Context()).Current()), "another source's token")
}

func TestMisusePanics(t *testing.T) {
	s := NewSource(t.Context())
	//lint:ignore SA1012 the nil context is the point
	assert.PanicsWithValue(t, "token: NewSource with a nil context", func() { NewSource(nil) })
	assert.PanicsWithValue(t, "token: Revoke with a nil cause", func() { s.Revoke(s.Current(), nil) })
	assert.PanicsWithValue(t, "token: Close with a nil cause", func() { s.Close(nil) })
}

func TestClose(t *testing.T) {
	s := NewSource(t.Context())
	tok := s.Current()
	s.Ready(tok)
	s.Close(errTest)
	s.Close(fmt.Errorf("second"))

	assert.Same(t, tok, s.Current())
	assert.Equal(t, Revoked, tok.State())
	assert.Same(t, errTest, tok.Cause())
	assert.False(t, s.Ready(tok))
	_, ok := s.Revoke(tok, fmt.Errorf("late"))
	assert.False(t, ok)
	_, err := s.Wait(t.Context())
	assert.ErrorIs(t, err, ErrClosed)
	assert.ErrorIs(t, err, errTest)
}

func TestWaitFollowsRearming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSource(t.Context())
		var got atomic.Pointer[Token]
		go func() {
			tok, err := s.Wait(t.Context())
			assert.NoError(t, err)
			got.Store(tok)
		}()
		for range 3 {
			synctest.Wait()
			assert.Nil(t, got.Load(), "a revoked token is nothing to return")
			s.Revoke(s.Current(), errTest)
		}
		synctest.Wait()
		s.Ready(s.Current())
		synctest.Wait()
		require.NotNil(t, got.Load())
		assert.EqualValues(t, 4, got.Load().Generation())
	})
}

// A waiter that is woken by a token that was revoked in the meantime keeps
// waiting: readiness it could not use is not reported.
func TestWaitDoesNotReportATokenRevokedBeforeItRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSource(t.Context())
		var got atomic.Pointer[Token]
		go func() {
			tok, _ := s.Wait(t.Context())
			got.Store(tok)
		}()
		synctest.Wait()
		s.mu.Lock() // Ready and Revoke in one step, as the waiter sees it
		first := s.current.Load()
		fresh := newToken(s.parent, 2)
		s.current.Store(fresh)
		first.cancel(errTest)
		first.granted.Store(true)
		close(first.ready)
		s.mu.Unlock()
		synctest.Wait()
		assert.Nil(t, got.Load())
		s.Ready(fresh)
		synctest.Wait()
		assert.Same(t, fresh, got.Load())
	})
}

// C60: the two ways for a wait to end without readiness can be told apart.
func TestC60WaitEndsWithItsOwnCause(t *testing.T) {
	s := NewSource(t.Context())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTest)
	_, err := s.Wait(ctx)
	assert.Same(t, errTest, err)
	assert.NotErrorIs(t, err, ErrClosed)

	tok := s.Current()
	s.Ready(tok)
	got, err := s.Wait(ctx)
	assert.NoError(t, err, "nothing to wait for")
	assert.Same(t, tok, got)
}

func TestTenThousandWaiters(t *testing.T) {
	const waiters = 10_000
	s := NewSource(t.Context())
	var wg, started sync.WaitGroup
	started.Add(waiters)
	var generations [3]atomic.Int64
	for range waiters {
		wg.Go(func() {
			started.Done()
			tok, err := s.Wait(t.Context())
			if assert.NoError(t, err) {
				generations[tok.Generation()].Add(1)
			}
		})
	}
	started.Wait()
	s.Revoke(s.Current(), errTest)
	s.Ready(s.Current())
	wg.Wait() // a lost wake-up would hang here
	assert.EqualValues(t, waiters, generations[2].Load(), "generation 1 was never ready")
}

// TestNoLostWakeUp races waiters against every order of transitions. Each
// waiter must end with a token that was ready, and the last one always is.
func TestNoLostWakeUp(t *testing.T) {
	for range 200 {
		s := NewSource(t.Context())
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				tok, err := s.Wait(t.Context())
				if assert.NoError(t, err) {
					assert.True(t, tok.WasReady())
				}
			})
		}
		wg.Go(func() {
			for range 5 {
				s.Ready(s.Current())
				s.Revoke(s.Current(), errTest)
			}
			s.Ready(s.Current())
		})
		wg.Wait()
	}
}

// TestFence is guarantee 1: from the moment Revoke has returned, nobody finds
// the revoked token current, or not revoked, or its context live.
func TestFence(t *testing.T) {
	s := NewSource(t.Context())
	var revoked atomic.Uint64 // the newest generation whose Revoke has returned
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !isClosed(done) {
				floor := revoked.Load()
				tok := s.Current()
				if tok.Generation() <= floor {
					t.Errorf("generation %d is current after the Revoke of %d returned", tok.Generation(), floor)
					return
				}
			}
		})
	}
	for range 2_000 {
		tok := s.Current()
		s.Ready(tok)
		s.Revoke(tok, errTest)
		if tok.State() != Revoked || tok.Context().Err() == nil || tok.Cause() != errTest {
			t.Fatal("Revoke returned before the token was over")
		}
		revoked.Store(tok.Generation())
	}
	close(done)
	wg.Wait()
}

func BenchmarkState(b *testing.B) {
	s := NewSource(b.Context())
	s.Ready(s.Current())
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if s.Current().State() != Ready {
				b.Fatal("not ready")
			}
		}
	})
}

func BenchmarkRevokeWithWaiters(b *testing.B) {
	for _, waiters := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			s := NewSource(b.Context())
			var wg sync.WaitGroup
			for range waiters {
				wg.Go(func() { _, _ = s.Wait(b.Context()) })
			}
			for b.Loop() {
				s.Revoke(s.Current(), errTest)
			}
			s.Close(errTest)
			wg.Wait()
		})
	}
}
