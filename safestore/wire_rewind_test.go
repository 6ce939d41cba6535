package safestore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
)

// The server goes back in time, or one that lags answers in its place.

// rewound makes a server that has lost what was done since, for a store that knows
// of it: a is reverted, b is gone, c is as it was.
func (w *wire) rewound() *token.Token {
	w.maps.Set(configMap("a", "1"))
	w.maps.Set(configMap("c", "1"))
	restore := w.Backup()
	w.maps.Set(configMap("a", "2"))
	w.maps.Set(configMap("b", "1"))
	w.Skip(200)
	tok := w.ready()
	after(5 * time.Minute)
	restore()
	return tok
}

func TestC28RestoredFromABackup(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		tok := w.rewound()
		w.ended(tok, time.Hour)
		assert.ErrorIs(t, tok.Cause(), invalidation.Rewound)
		w.readyAfter(0, 2*time.Second)
		w.same()
		got, err := w.store.Get(t.Context(), named("a"))
		require.NoError(t, err)
		assert.Equal(t, "1", got.Data["key"])
		assert.Equal(t, []string{"ready 1", "revoked 1 Rewound", "ready 2"}, w.hooks())

		w.maps.Set(configMap("d", "1"))
		after(0)
		w.same()
	})
}

// After a rewind, versions are given out a second time. That an object has the
// version of one that is held says nothing.
func TestC28VersionsAreUsedTwice(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Break(wiretest.First(1, wiretest.Initial), wiretest.Slow(0))
		tok := w.rewound()
		w.Break(wiretest.Initial, wiretest.Slow(time.Second))
		w.ended(tok, time.Hour)
		w.maps.Set(configMap("a", "other"))
		w.readyAfter(0, 5*time.Second)
		got, err := w.store.Get(t.Context(), named("a"))
		require.NoError(t, err)
		assert.Equal(t, "1003", got.ResourceVersion)
		assert.Equal(t, "other", got.Data["key"])
		w.same()
	})
}

// A replica that lags answers a relist: what it says is refused, until it has
// caught up or others answer.
func TestC30ReplicaThatLags(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		old := w.Version()
		w.maps.Set(configMap("a", "2"))
		heal := w.Break(wiretest.All, wiretest.Lag(old))
		w.run()
		after(time.Minute)
		if snapshot, err := w.store.Snapshot(); err == nil {
			got, err := snapshot.Get(named("a"))
			require.NoError(t, err)
			assert.Equal(t, "2", got.Data["key"], "the older state is never shown as ready")
		}
		heal()
		w.readyAfter(0, 45*time.Second)
		w.same()
	})
}
