package health_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/health"
	"github.com/kube-safestore/kube-safestore/token"
)

// C3: a grace covers what happens to all replicas at once. Reads fail all the same.
func TestC3GraceForWhatWasReady(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		strict, patient := health.Ready(0, w.pods), health.Ready(time.Minute, w.pods)
		assert.Error(t, patient.Check(nil), "not started")
		w.Break(wiretest.Of(nodes, wiretest.All), wiretest.Respond(500, nil, "no"))
		w.run()
		assert.Error(t, health.Ready(time.Minute, w.nodes).Check(nil), "never ready: no grace")
		require.NoError(t, strict.Check(nil))

		heal := w.refuse(pods)
		assert.Error(t, strict.Check(nil))
		assert.NoError(t, patient.Check(nil))
		_, err := w.pods.Snapshot()
		assert.ErrorIs(t, err, invalidation.Forbidden)
		after(58*time.Second - aMoment)
		assert.NoError(t, patient.Check(nil))
		after(time.Second + aMoment)
		assert.Error(t, patient.Check(nil), "a minute is over")
		heal()
		_, err = w.pods.WaitReady(t.Context())
		require.NoError(t, err)
		assert.NoError(t, strict.Check(nil))

		w.stop()
		after(0)
		assert.Error(t, patient.Check(nil), "closed: no grace")
	})
}

// A probe says within the bound what a reader would hear.
func TestReadyKeepsTheBound(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		c := health.Ready(0, groupOf(t, "all", w.pods, w.nodes))
		w.run()
		w.BlackHole(true)
		for begun := time.Now(); c.Check(nil) == nil; time.Sleep(time.Millisecond) {
			require.LessOrEqual(t, time.Since(begun), 10*time.Second)
		}
		assert.ErrorIs(t, c.Check(nil), invalidation.Stale)
		w.BlackHole(false)
	})
}

// A store that joins a group has the group's grace for its first list.
func TestGraceForWhatJoins(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.run()
		heal := w.refuse(nodes)
		w.Break(wiretest.Of(nodes, wiretest.All), wiretest.Hang)
		defer heal()
		g := groupOf(t, "all", w.pods)
		c := health.Ready(time.Minute, g)
		require.NoError(t, c.Check(nil))
		after(5 * time.Minute)
		require.NoError(t, g.Add(w.nodes))
		assert.NoError(t, c.Check(nil))
		after(time.Minute)
		assert.Error(t, c.Check(nil))
		assert.Equal(t, token.Pending, g.Token().State())
	})
}

// Nobody who is slow keeps a probe waiting: not the server, not a hook, not a reader.
func TestC57ProbesDoNotWait(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		release := make(chan struct{})
		defer close(release)
		g := groupOf(t, "all", w.pods, w.nodes)
		g.OnReady(func(*token.Token) { <-release })
		w.pods.OnReady(func(*token.Token) { <-release })
		w.pods.OnRevoke(func(*invalidation.Revocation) { <-release })
		ready, live := health.Ready(0, g), health.Live(time.Hour, g)
		w.Break(wiretest.All, wiretest.Hang)
		w.run()
		go w.pods.WaitReady(t.Context())
		after(time.Second)
		requests := len(w.Requests(wiretest.All))
		for range 100 {
			code, _ := get(t, ready, "/readyz?verbose")
			assert.Equal(t, 500, code)
			code, _ = get(t, live, "/livez?verbose")
			assert.Equal(t, 200, code)
		}
		after(0)
		assert.Len(t, w.Requests(wiretest.All), requests, "and no probe asks the server")
	})
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		release := make(chan struct{})
		defer close(release)
		w.pods.OnRevoke(func(*invalidation.Revocation) { <-release })
		c := health.Ready(0, w.pods)
		w.run()
		tok, err := w.pods.WaitReady(t.Context())
		require.NoError(t, err)
		w.Break(wiretest.All, wiretest.Hang) // else it may be listed again by then
		require.True(t, w.pods.Revoke(tok, errors.New("why not")))
		code, _ := get(t, c, "/readyz")
		assert.Equal(t, 500, code)
	})
}
