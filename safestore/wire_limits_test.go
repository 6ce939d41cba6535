package safestore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
)

// C42: a set over the limit is a reason, not an end of the process: at the first
// list, at an event, and for as long as it is too large. Then the store recovers
// by itself.
func TestC42TooLarge(t *testing.T) {
	onWire(t, safestore.Options{MaxObjects: 2}, func(t *testing.T, w *wire) {
		for _, name := range []string{"a", "b", "c"} {
			w.maps.Set(configMap(name, "1"))
		}
		w.run()
		err := w.notReady()
		require.ErrorIs(t, err, invalidation.TooLarge)
		assert.ErrorContains(t, err, "the set is too large: it has more than 2 objects")
		after(time.Minute)
		require.ErrorIs(t, w.notReady(), invalidation.TooLarge)
		assert.LessOrEqual(t, w.count(wiretest.All), 10, "it is asked for at the pace of failures")

		w.maps.Delete("default", "c")
		tok := w.readyAfter(0, 46*time.Second)
		w.same()

		w.maps.Set(configMap("d", "1"))
		w.ended(tok, time.Second)
		require.ErrorIs(t, w.notReady(), invalidation.TooLarge)
		stale, _ := w.store.Stale()
		assert.Equal(t, 2, stale.Len(), "what fitted is still there for those who ask for it")
		w.maps.Delete("default", "a")
		w.readyAfter(0, 46*time.Second)
		w.same()
	})
}
