package safestore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// C3: quiet is not stuck. For hours nothing happens to the objects, while the
// server's version goes on, and no read fails. What it costs is counted: these are
// the numbers in the README.
func TestC3QuietHours(t *testing.T) {
	bookmarks := map[string]wiretest.Fault{"bookmarks": nil, "no bookmarks": wiretest.NoBookmarks}
	for _, tc := range []struct {
		server  string
		bound   time.Duration
		perHour int // requests, at most
		large   bool
	}{
		{"bookmarks", 0, 10, false},
		{"bookmarks", 10 * time.Minute, 40, false},
		{"bookmarks", time.Minute, 240, false},
		{"bookmarks", 30 * time.Second, 480, false},
		{"bookmarks", 10 * time.Second, 1400, false},
		{"bookmarks", 5 * time.Second, 4_000, false},
		{"bookmarks", 3 * time.Second, 12_000, false},
		{"bookmarks", 2 * time.Second, 16_000, false},
		{"bookmarks", 5 * time.Second, 9_000, true},
		{"bookmarks", 3 * time.Second, 18_000, true},
		{"bookmarks", 2 * time.Second, 25_000, true},
		{"no bookmarks", 0, 120, false},
		{"no bookmarks", time.Minute, 240, false},
		{"no bookmarks", 10 * time.Second, 1400, false},
		{"no bookmarks", 8 * time.Second, 2000, false},
		{"no bookmarks", 7 * time.Second, 2600, false},
		{"no bookmarks", 6 * time.Second, 4_000, false},
		{"bookmarks", 6 * time.Second, 4_000, false},
	} {
		t.Run(fmt.Sprintf("%s, bound %v, large=%v", tc.server, tc.bound, tc.large), func(t *testing.T) {
			opts := safestore.Options{MaxStaleness: tc.bound}
			if tc.large { // more than one page
				opts.Watch.PageSize = 1
			}
			onWire(t, opts, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("b", "1"))
				if fault := bookmarks[tc.server]; fault != nil {
					w.Break(wiretest.Watches, fault)
				}
				w.maps.Set(configMap("a", "1"))
				first := w.ready()
				length := time.Hour
				if tc.bound > 0 && tc.bound < 6*time.Second {
					length /= 12 // so many requests take real time
				}
				for range length / time.Second {
					time.Sleep(time.Second)
					w.Skip(1)
					_, err := w.store.Snapshot()
					require.NoError(t, err)
				}
				require.Same(t, first, w.store.Token())
				perHour := w.count(wiretest.All) * int(time.Hour/length)
				t.Logf("%d requests per hour, %d of them lists", perHour, w.count(wiretest.Lists)*int(time.Hour/length))
				assert.LessOrEqual(t, perHour, tc.perHour)
				assert.Equal(t, 1, w.count(wiretest.Initial), "nothing is listed again")
			})
		})
	}
}

// A busy store needs no second watch: its stream answers.
func TestBusyStoreIsProvenByItsStream(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		first := w.ready()
		for i := range 10 * 600 {
			time.Sleep(100 * time.Millisecond)
			w.maps.Set(configMap("a", fmt.Sprint(i)))
			_, err := w.store.Snapshot()
			require.NoError(t, err)
		}
		assert.Same(t, first, w.store.Token())
		assert.LessOrEqual(t, w.count(wiretest.Watches), 4, "the store's own in ten minutes, and no others")
	})
}

// The bound is exact: a read succeeds up to it and fails after it, whether or not
// a timer has run; and the timer tells those who do not read.
func TestBoundToTheNanosecond(t *testing.T) {
	const bound = 10 * time.Second
	onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		snapshot, err := w.store.Snapshot()
		require.NoError(t, err)
		w.BlackHole(true)
		time.Sleep(time.Until(snapshot.Proven().Add(bound)))
		_, err = w.store.Snapshot()
		assert.NoError(t, err, "as old as the bound")
		assert.NoError(t, first.Context().Err())
		time.Sleep(time.Nanosecond)
		_, err = w.store.Snapshot()
		assert.ErrorIs(t, err, invalidation.Stale)
		assert.ErrorIs(t, first.Cause(), invalidation.Stale, "the reader has ended the token")
		stale, age := w.store.Stale()
		require.NotNil(t, stale)
		assert.Equal(t, bound+time.Nanosecond, age)
	})
	onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
		first := w.ready()
		w.BlackHole(true)
		time.Sleep(bound - time.Nanosecond)
		synctest.Wait()
		assert.NoError(t, first.Context().Err(), "just before")
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		assert.ErrorIs(t, first.Cause(), invalidation.Stale, "just after, and nobody has read")
		assert.Equal(t, []string{"ready 1", "revoked 1 Stale"}, w.hooks())
	})
}

// A set that took longer to list than the bound allows is not ready when it is
// complete, but when it is proven.
func TestSlowListIsProvenBeforeItIsReady(t *testing.T) {
	opts := safestore.Options{MaxStaleness: 5 * time.Second, Watch: watcher.Options{PageSize: 1}}
	onWire(t, opts, func(t *testing.T, w *wire) {
		w.onLists()
		for i := range 10 {
			w.maps.Set(configMap(fmt.Sprint(i), "1"))
		}
		heal := w.Break(wiretest.Later, wiretest.Slow(time.Second))
		w.run()
		after(8 * time.Second)
		w.Skip(1)
		w.readyAfter(time.Second, 4*time.Second)
		heal()
		snapshot, err := w.store.Snapshot()
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(snapshot.Proven()), 5*time.Second)
		assert.EqualValues(t, 1, w.store.Token().Generation())
	})
}

// Where there are no resource versions, a proof is a list of everything, whose contents
// are compared with the set: an object that was changed or deleted unheard of is found.
func TestProofWithoutVersions(t *testing.T) {
	const bound = 10 * time.Second
	onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
		w.Style(wiretest.Absent)
		w.onLists()
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		after(time.Minute)
		require.Same(t, first, w.store.Token(), "each proof has succeeded")
		assert.True(t, w.store.Status().Watch.Unversioned)
		w.Stall()
		w.maps.Set(configMap("a", "2"))
		w.ended(first, bound)
		w.readyAfter(0, bound)
		w.same()
		w.Stall()
		w.maps.Delete("default", "a")
		w.ended(w.store.Token(), bound)
		w.readyAfter(0, bound)
		w.same()
	})
}

// Without a bound it takes a silence for that: the server sends no bookmarks.
func TestSilenceWithoutVersions(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Style(wiretest.Absent)
		w.onLists()
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		after(4 * time.Minute)
		assert.Same(t, first, w.store.Token(), "quiet is not stuck")
		assert.LessOrEqual(t, w.count(wiretest.All), 7, "one list for each silence")
	})
}

// Opaque versions can be told apart: that is enough for a proof where nothing
// else happens, and for what a second watch brings.
func TestProofWithOpaqueVersions(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		w.Style(wiretest.Opaque)
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		for i := range 600 {
			after(time.Second)
			if i%7 == 0 {
				w.maps.Set(configMap("a", fmt.Sprint(i)))
			}
			_, err := w.store.Snapshot()
			require.NoError(t, err)
		}
		assert.Same(t, first, w.store.Token())
		w.Stall()
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, 0, 10*time.Second)
		w.readyAfter(0, 10*time.Second)
		w.same()
	})
}

// The store's status shows where it stands.
func TestStatusShowsTheProof(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		w.ready()
		after(5 * time.Second)
		status := w.store.Status()
		assert.Equal(t, w.began, status.Proven)
		assert.Equal(t, "watching", status.Watch.Phase)
		assert.Empty(t, status.Watch.Proof)
		w.Break(wiretest.Lists, wiretest.Hang)
		after(2 * time.Second)
		assert.Equal(t, "asking for the server's version", w.store.Status().Watch.Proof)
		_, err := w.store.Snapshot()
		require.NoError(t, err)
		after(4 * time.Second)
		_, err = w.store.Snapshot()
		assert.ErrorContains(t, err, "proof of freshness: nothing came for 5s", "the last error")
	})
}

// Who needs fresh data is not kept waiting much longer than that when the server is
// back, however long it was away.
func TestRecoveryIsPacedByTheBound(t *testing.T) {
	for bound, most := range map[time.Duration]time.Duration{
		2 * time.Second:  8 * time.Second, // of pauses of up to 5 s and half of it
		10 * time.Second: 15 * time.Second,
		0:                45 * time.Second,
	} {
		onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
			w.maps.Set(configMap("a", "1"))
			w.ready()
			heal := w.Break(wiretest.All, wiretest.Answer(failure("not now")))
			w.Cut()
			after(10 * time.Minute)
			w.notReady()
			heal()
			w.readyAfter(0, most)
			w.same()
		})
	}
}
