package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/health"
)

const limit = 10 * time.Minute

// probing asks every ten seconds, as a kubelet does, and returns after how long the
// check failed; it gives up after an hour.
func probing(c *health.Check) (failed time.Duration, ok bool) {
	begun := time.Now()
	for ; time.Since(begun) < time.Hour; after(10 * time.Second) {
		if c.Check(nil) != nil {
			return time.Since(begun), true
		}
	}
	return 0, false
}

// assertFails checks that the limit, and what is added to it, is kept.
func assertFails(t *testing.T, c *health.Check, since time.Duration) {
	t.Helper()
	failed, ok := probing(c)
	require.True(t, ok, "it never failed")
	assert.GreaterOrEqual(t, since+failed, limit)
	assert.LessOrEqual(t, since+failed, limit+limit/10+10*time.Second)
}

func assertLives(t *testing.T, c *health.Check) {
	t.Helper()
	failed, ok := probing(c)
	assert.False(t, ok, "after %v: %v", failed, c.Check(nil))
}

func TestC57LiveFailsForWhatARestartCouldCure(t *testing.T) {
	for what, breaks := range map[string]func(*wire){
		"the server is away":    func(w *wire) { w.Down() },
		"nothing comes through": func(w *wire) { w.BlackHole(true) },
		"lists hang":            func(w *wire) { w.Break(wiretest.All, wiretest.Hang); w.Cut() },
		"a server that is lost": func(w *wire) { w.Break(wiretest.All, wiretest.Respond(500, nil, "no")); w.Cut() },
	} {
		t.Run(what, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				c := health.Live(limit, groupOf(t, "all", w.pods), w.nodes)
				w.run()
				require.NoError(t, c.Check(nil))
				breaks(w)
				for w.pods.NotReady() == nil {
					time.Sleep(time.Second)
				}
				assertFails(t, c, 0)
				assert.ErrorIs(t, c.Check(nil), safestore.ErrNotReady)
				w.BlackHole(false)
			})
		})
		t.Run(what+" from the start", func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				breaks(w)
				w.run()
				assertFails(t, health.Live(limit, w.pods), 0)
				w.BlackHole(false)
			})
		})
	}
}

func TestC57LiveStandsWhatNoRestartCures(t *testing.T) {
	for what, breaks := range map[invalidation.Reason]func(*wire){
		invalidation.Forbidden:    func(w *wire) { w.refuse(pods) },
		invalidation.ResourceGone: func(w *wire) { w.Remove(pods); w.Cut() },
	} {
		t.Run(string(what), func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				c := health.Live(limit, w.pods)
				w.run()
				breaks(w)
				after(time.Minute)
				require.ErrorIs(t, w.pods.NotReady(), what)
				assertLives(t, c)
			})
		})
	}
	t.Run("not started, then stopped", func(t *testing.T) {
		onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
			c := health.Live(limit, w.pods, groupOf(t, "empty"))
			assertLives(t, c)
			w.Break(wiretest.All, wiretest.Respond(500, nil, "no"))
			w.run()
			after(time.Minute)
			require.Error(t, w.pods.Status().Watch.LastError)
			w.stop()
			assertLives(t, c)
		})
	})
}

// Nothing of the time of a refusal counts, once something else is in the way.
func TestC57TheLimitBeginsAfterARefusal(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		c := health.Live(limit, w.pods)
		w.run()
		heal := w.refuse(pods)
		assertLives(t, c)
		heal()
		w.Down()
		w.Cut()
		for apierrors.IsForbidden(w.pods.Status().Watch.LastError) { // there is a pause under way
			assert.NoError(t, c.Check(nil))
			after(time.Second)
		}
		assert.NoError(t, c.Check(nil), "an hour of it is forgiven")
		assertFails(t, c, time.Second)
		w.Up()
		_, err := w.pods.WaitReady(t.Context())
		require.NoError(t, err)
		assert.NoError(t, c.Check(nil))
	})
}

// Replicas that were started together are not killed together.
func TestLimitsAreSpread(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		var checks []*health.Check
		for range 50 {
			checks = append(checks, health.Live(limit, w.pods))
		}
		w.Down()
		w.run()
		after(limit + limit/20)
		failed := 0
		for _, c := range checks {
			if c.Check(nil) != nil {
				failed++
			}
		}
		assert.Greater(t, failed, 0)
		assert.Less(t, failed, len(checks))
	})
}

// C57: a reason that a restart cannot cure is no excuse any more when the server cannot be
// reached at all.
func TestC57AnOldReasonIsNoExcuse(t *testing.T) {
	onWire(t, safestore.Options{MaxObjects: 1}, func(t *testing.T, w *wire) {
		all := w.Resource(pods)
		for _, name := range []string{"a", "b"} {
			all.Set(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
		}
		w.run()
		c := health.Live(time.Minute, w.pods)
		after(time.Minute)
		require.ErrorIs(t, w.pods.NotReady(), invalidation.TooLarge)
		require.NoError(t, c.Check(nil))
		w.Down()
		w.Cut()
		for range 5 {
			after(time.Minute)
			_ = c.Check(nil)
		}
		assert.Error(t, c.Check(nil), "the server has been away for five minutes: %v", w.pods.Status().Watch.LastError)
	})
}
