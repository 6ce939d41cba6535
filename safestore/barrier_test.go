package safestore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// proveWhenAsked publishes a proof after each wait that the store asks for, as a
// watcher does.
func (r *rig) proveAfter(wait time.Duration) {
	for wait > 0 {
		time.Sleep(wait)
		wait = r.Prove(watcher.Proof{AsOf: time.Now()})
	}
}

// Who registers with OnRevokeSync has acted before anybody reads the next
// generation, or has had its time.
func TestSyncHooksActBeforeTheNextRead(t *testing.T) {
	for name, tc := range map[string]struct {
		takes, until time.Duration
	}{
		"in time": {time.Second, time.Second},
		"late":    {time.Hour, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				g := groupOf(t, r)
				began := time.Now()
				acted := make(chan time.Duration, 2)
				var ended error
				r.OnRevokeSync(10*time.Second, func(ctx context.Context, revocation *invalidation.Revocation) {
					_, err := r.Snapshot()
					assert.ErrorIs(t, err, ErrNotReady, "reads fail by then")
					select {
					case <-time.After(tc.takes):
					case <-ctx.Done():
						ended = context.Cause(ctx)
					}
					assert.Equal(t, invalidation.Stuck, revocation.Reason)
					acted <- time.Since(began)
				})
				r.publishSet(t, "1")
				r.revokeFor(invalidation.StreamStuck, nil)
				r.undamp()
				wait := r.Prove(watcher.Proof{AsOf: time.Now()})
				assert.Positive(t, wait, "readiness waits")
				assert.Error(t, g.NotReady())
				time.Sleep(tc.until - 1)
				assert.Positive(t, r.Prove(watcher.Proof{AsOf: time.Now()}), "just before")
				time.Sleep(2 * time.Nanosecond)
				synctest.Wait()
				assert.Zero(t, r.Prove(watcher.Proof{AsOf: time.Now()}), "just after")
				assert.NoError(t, r.NotReady())
				assert.NoError(t, g.NotReady())
				assert.Equal(t, tc.until, <-acted)
				if name == "late" {
					assert.ErrorIs(t, ended, invalidation.Stuck)
				}
			})
		})
	}
}

// A store with such a hook asks for a proof as soon as it has acted, so that
// nobody waits for the limit.
func TestSyncHookIsNotWaitedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New[*Map](sourceOf(mapList("1")), Options{})
		require.NoError(t, err)
		s.OnRevokeSync(time.Hour, func(context.Context, *invalidation.Revocation) { time.Sleep(time.Minute) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		first, err := s.WaitReady(ctx)
		require.NoError(t, err)
		began := time.Now()
		s.Revoke(first, nil)
		_, err = s.WaitReady(ctx)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(began), time.Minute)
		assert.Less(t, time.Since(began), 2*time.Minute)
		cancel()
		began = time.Now()
		require.NoError(t, <-done)
		assert.Equal(t, time.Minute, time.Since(began), "nor does Run leave it behind")
	})
}

// Without a gap nobody could act: with such a hook there is one.
func TestSyncHooksEndGaplessRelists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		g := groupOf(t, r)
		remove := r.OnRevokeSync(time.Minute, func(context.Context, *invalidation.Revocation) { time.Sleep(time.Second) })
		r.publishSet(t, "1")
		relist := func() (wait time.Duration) {
			r.Begin()
			r.undamp()
			return r.Publish("2", watcher.Proof{AsOf: time.Now()})
		}
		wait := relist()
		assert.Positive(t, wait)
		assert.ErrorIs(t, r.NotReady(), invalidation.Relist)
		assert.ErrorIs(t, g.NotReady(), invalidation.Relist)
		time.Sleep(2 * time.Second)
		r.proveAfter(time.Nanosecond)
		second := r.Token()
		require.Equal(t, token.Ready, second.State())

		remove()
		assert.Zero(t, relist())
		assert.Equal(t, token.Ready, r.Token().State())
		assert.NotSame(t, second, r.Token())
	})
}

// A group holds back its own readiness, not that of its members.
func TestSyncHooksOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		g := groupOf(t, r)
		first := make(chan struct{})
		g.OnRevokeSync(time.Minute, func(ctx context.Context, _ *invalidation.Revocation) {
			select {
			case <-first:
			case <-ctx.Done():
			}
		})
		r.publishSet(t, "1")
		r.revokeFor(invalidation.StreamStuck, errors.New("silent"))
		r.publishSet(t, "2")
		assert.NoError(t, r.NotReady())
		assert.Error(t, g.NotReady())
		close(first)
		synctest.Wait()
		assert.NoError(t, g.NotReady(), "as soon as it has acted")

		first = make(chan struct{})
		r.Begin()
		r.undamp()
		r.Publish("3", watcher.Proof{AsOf: time.Now()}) // without a gap
		assert.NoError(t, r.NotReady())
		assert.Error(t, g.NotReady())
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.NoError(t, g.NotReady(), "or when its time is up")
		close(first)
	})
}
