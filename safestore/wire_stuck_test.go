package safestore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// defaultSilence is the default of MaxSilence.
const defaultSilence = 75 * time.Second

// over waits until a token is revoked, and says between which two lengths of time
// that may take from now on.
func (w *wire) over(tok *token.Token, reason invalidation.Reason, least, most time.Duration) {
	w.t.Helper()
	start := time.Now()
	select {
	case <-tok.Context().Done():
	case <-time.After(most + time.Nanosecond):
		require.FailNow(w.t, "not revoked", "within %v: %+v", most, w.store.Status())
	}
	took := time.Since(start)
	require.GreaterOrEqual(w.t, took, least, "how long it took to be revoked")
	require.ErrorIs(w.t, tok.Cause(), reason)
}

// A watch that is silent because it is stuck is found by a proof, and healed by a
// new stream: there is no list, and what was missed is there.
func TestC2StuckStream(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Stall()
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, defaultSilence, defaultSilence+2*time.Second)
		assert.ErrorIs(t, w.notReady(), invalidation.Stuck)
		second := w.readyAfter(0, 3*time.Second)
		assert.EqualValues(t, 2, second.Generation())
		w.same()
		assert.Equal(t, 1, w.count(wiretest.Initial), "no new list")
		assert.Equal(t, []string{"ready 1", "revoked 1 Stuck", "ready 2"}, w.hooks())

		w.stop(nil)
		assert.ErrorIs(t, w.notReady(), invalidation.Closed, "after Stop: not ready at once")
	})
}

// The server keeps the connection open, and sends what it has to nobody. Whatever
// is asked for is stuck as well.
func TestC4BlackHole(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		after(240 * time.Second)
		w.BlackHole(true)
		w.over(first, invalidation.Stuck, 15*time.Second, defaultSilence+5*time.Second)
		after(time.Hour)
		assert.ErrorIs(t, w.notReady(), invalidation.Stuck)
		w.BlackHole(false)
		w.maps.Set(configMap("a", "2"))
		w.readyAfter(0, time.Minute)
		w.same()
	})
}

// C4 (b): no deadline depends on the server to honour timeoutSeconds.
func TestC4ServerIgnoresTimeoutSeconds(t *testing.T) {
	onWire(t, watchOptions(watcher.Options{WatchTimeout: time.Minute}), func(t *testing.T, w *wire) {
		w.Break(wiretest.Watches, wiretest.NoTimeout)
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		after(10 * time.Minute)
		assert.Same(t, first, w.store.Token())
		assert.GreaterOrEqual(t, w.count(wiretest.Resumed), 4, "the watch is closed and resumed all the same")
	})
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Break(wiretest.Watches, wiretest.NoTimeout)
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Stall()
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, 0, defaultSilence+2*time.Second)
		w.readyAfter(0, time.Minute)
		w.same()
	})
}

// A bound that is shorter than what the transport needs to notice holds.
func TestC6BoundIsTheReadersOwn(t *testing.T) {
	const bound = 20 * time.Second
	onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		after(time.Minute)
		w.BlackHole(true)
		went := time.Now()
		for first.Context().Err() == nil {
			snapshot, err := w.store.Snapshot()
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(snapshot.Proven()), bound)
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, time.Since(went), bound)
		assert.ErrorIs(t, first.Cause(), invalidation.Stale)
		w.BlackHole(false)
		w.readyAfter(0, time.Minute)
	})
}

// Trouble of the side requests is their own as long as the stream delivers.
func TestC1SideRequestsFail(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Break(wiretest.Lists, wiretest.Answer(failure("etcd stalls")))
		for range 300 {
			after(time.Second)
			w.maps.Set(configMap("a", time.Now().String()))
		}
		w.same()
		assert.Same(t, first, w.store.Token())
		assert.Equal(t, 1, w.count(wiretest.Initial), "nothing is listed again")
	})
}

// The same with proofs that are asked for: what fails is tried again, and the
// bound alone decides.
func TestC1ProofsFail(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: time.Minute}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		heal := w.Break(wiretest.Lists, wiretest.Answer(tooMany(0)))
		after(50 * time.Second)
		assert.Same(t, first, w.store.Token())
		assert.Error(t, w.store.Status().Watch.LastError)
		heal()
		after(10 * time.Minute)
		assert.Same(t, first, w.store.Token(), "a proof came in time")
		assert.NoError(t, w.store.Status().Watch.LastError)

		w.Break(wiretest.Lists, wiretest.Answer(tooMany(0)))
		w.over(first, invalidation.Stale, 20*time.Second, time.Minute)
	})
}

// A proof that is answered 403 is an answer about this store.
func TestRefusedProof(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Break(wiretest.Lists, wiretest.Answer(forbidden()))
		w.over(first, invalidation.Forbidden, 0, 10*time.Second)
		stale, _ := w.store.Stale()
		assert.Nil(t, stale)
	})
}

// An outage that is shorter than the silence allowed costs nothing. A longer one
// ends readiness, and what follows it needs a proof and no list.
func TestServerDown(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Down()
		after(30 * time.Second)
		w.Up()
		after(3 * time.Minute)
		w.same()
		assert.Same(t, first, w.store.Token())

		w.Down()
		w.over(first, invalidation.Stale, 0, defaultSilence)
		assert.ErrorContains(t, w.notReady(), "refused", "the last error of the server")
		after(10 * time.Minute)
		assert.EqualValues(t, 2, w.store.Token().Generation(), "one outage is one revocation")
		w.maps.Set(configMap("a", "2"))
		w.Up()
		w.readyAfter(0, time.Minute)
		w.same()
		assert.Equal(t, 1, w.count(wiretest.Initial), "no new list")
	})
}

// The connection is cut again and again, and each time a new one is accepted and
// brings nothing: that is no sign of life.
func TestStuckBehindAProxyThatReconnects(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Break(wiretest.Watches, wiretest.Together(wiretest.Stalled, wiretest.EndsAfter(20*time.Second)))
		w.Cut()
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, 0, defaultSilence+10*time.Second)
		after(10 * time.Minute)
		assert.Less(t, w.store.Token().Generation(), uint64(12), "lists still work, and their sets do not last")
		w.Heal()
		w.readyAfter(0, time.Minute)
		after(time.Minute)
		w.same()
	})
}

// If new streams of the same version are stuck as well, the set is listed again.
func TestStuckAgainAndAgainIsListed(t *testing.T) {
	reconnects := 0
	opts := watchOptions(watcher.Options{MaxSilence: 5 * time.Second, Reconnect: func() { reconnects++ }})
	onWire(t, opts, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Break(wiretest.First(3, wiretest.Resumed), wiretest.EditEvents(func(e *wiretest.Event) { *e = wiretest.Event{} }))
		w.Break(wiretest.Resumed, wiretest.Stalled)
		w.Stall()
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, 0, 15*time.Second)
		w.readyAfter(0, 2*time.Minute)
		w.same()
		whole := func(r wiretest.Request) bool { return wiretest.Lists(r) && r.Options.Limit != 1 }
		assert.NotZero(t, w.count(whole), "the way out is a list, by a request that is no stream")
		assert.Equal(t, 1, w.count(wiretest.Initial))
		assert.GreaterOrEqual(t, reconnects, 3, "the connection was given up each time")
	})
}

// An event that the server's own cache has lost is not found by the stream, nor
// by a second one from the same cache; but one that the main stream alone has
// lost is.
func TestMissedEventIsFoundByTheNextProof(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Stall()
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, 0, 10*time.Second)
		w.readyAfter(0, 5*time.Second)
		w.same()
	})
}

// A set that lacks what the server has is no reason to put off the next watch: proofs
// that come more often than the pause ends do not begin it again.
func TestC2BehindWhileWaiting(t *testing.T) {
	onWire(t, watchOptions(watcher.Options{MaxSilence: 2 * time.Second}), func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		heal := w.Break(notPeeks, wiretest.Answer(apierrors.NewServiceUnavailable("no time")))
		w.Cut()
		after(10 * time.Minute)
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, 0, time.Minute)
		after(time.Minute)
		heal()
		w.readyAfter(0, 46*time.Second) // the longest pause of 30 s, jittered
		w.same()
		assert.Zero(t, w.count(sets), "no new list")
	})
}

// sets are the lists of more than what a proof asks for.
func sets(r wiretest.Request) bool { return wiretest.Lists(r) && r.Options.Limit != 1 }

// notPeeks are the watches that resume.
func notPeeks(r wiretest.Request) bool { return wiretest.Resumed(r) && !peeks(r) }

// A list that a proof waits for is lost on the way. It is waited for no longer than the
// question of a proof would have been.
func TestC6AuditIsLost(t *testing.T) {
	secrets := wiretest.Kind{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("secrets"), Kind: "Secret"}
	for bound, limit := range map[time.Duration]time.Duration{3 * time.Second: 7 * time.Second, 10 * time.Second: 17 * time.Second} {
		t.Run(bound.String(), func(t *testing.T) {
			onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
				w.Break(wiretest.Resumed, wiretest.Forget(1000, watch.Bookmark)) // so that audits stand in
				w.maps.Set(configMap("a", "1"))
				first := w.ready()
				w.Resource(secrets).Set(secret("b")) // the version moves, and nothing here does
				w.Break(wiretest.First(1, sets), wiretest.Hang)
				w.over(first, invalidation.Stale, 0, bound+time.Millisecond)
				w.readyAfter(0, limit-bound)
				w.same()
			})
		})
	}
}
