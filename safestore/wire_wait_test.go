package safestore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// returned is the object as the server returned it from a write.
func (w *wire) returned(name, value string) *corev1.ConfigMap {
	m := configMap(name, value)
	m.ResourceVersion = strconv.FormatInt(w.maps.Set(m.DeepCopy()), 10)
	return m
}

// waiting runs a wait in the background, and returns what it returns.
func waiting(wait func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- wait() }()
	synctest.Wait()
	return done
}

func stillWaiting(t *testing.T, done <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		require.FailNow(t, "the wait is over", "%v", err)
	default:
	}
}

// C47: answers to a program's own requests never get into the store, however late
// they come; waiting for one that has been overtaken is over at once.
func TestC47LateAnswersChangeNothing(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.ready()
		patched := w.returned("a", "patched") // its answer is held up
		newer := w.returned("a", "newer")
		require.NoError(t, w.store.WaitFor(t.Context(), newer))
		require.NoError(t, w.store.WaitFor(t.Context(), patched))
		got, err := w.store.Get(t.Context(), named("a"))
		require.NoError(t, err)
		assert.Equal(t, "newer", got.Data["key"])

		w.maps.Delete("default", "a")
		require.NoError(t, w.store.Sync(t.Context()))
		for _, late := range []*corev1.ConfigMap{patched, newer} {
			require.NoError(t, w.store.WaitFor(t.Context(), late))
			_, err = w.store.Get(t.Context(), named("a"))
			assert.True(t, apierrors.IsNotFound(err), "what is deleted stays deleted")
		}
		w.same()
	})
}

// C49: read your own write. What the wait is for is there when it returns, and
// nothing of what others wrote is lost.
func TestC49WaitFor(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.ready()
		for i := range 20 {
			own := w.returned("own", fmt.Sprint(i))
			w.returned("foreign", fmt.Sprint(i))
			require.NoError(t, w.store.WaitFor(t.Context(), own))
			got, err := w.store.Get(t.Context(), named("own"))
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint(i), got.Data["key"])
		}
		w.same()
	})
}

// C49: a relist in the middle does not end the wait.
func TestC49WaitForAcrossARelist(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("own", "1"))
		w.ready()
		w.Stall()
		own := w.returned("own", "2")
		done := waiting(func() error { return w.store.WaitFor(t.Context(), own) })
		stillWaiting(t, done)
		w.Compact()
		w.Resume()
		w.End()
		require.NoError(t, <-done)
		w.same()
	})
}

// C49: after a rewind the version means nothing.
func TestC49WaitForEndsWithARewind(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("own", "1"))
		restore := w.Backup()
		w.ready()
		w.Stall()
		own := w.returned("own", "2")
		done := waiting(func() error { return w.store.WaitFor(t.Context(), own) })
		version := waiting(func() error { return w.store.WaitForVersion(t.Context(), own.ResourceVersion) })
		w.maps.Set(configMap("other", "1"))
		w.Resume()
		synctest.Wait()
		require.NoError(t, <-done, "it came before the rewind")
		require.NoError(t, <-version)

		done = waiting(func() error { return w.store.WaitForVersion(t.Context(), "5000") })
		restore()
		assert.ErrorIs(t, <-done, invalidation.Rewound)
		w.readyAfter(0, time.Minute)
		w.same()
		done = waiting(func() error { return w.store.WaitForVersion(t.Context(), "5000") })
		after(time.Hour)
		stillWaiting(t, done)
		w.stop(errors.New("enough"))
		assert.ErrorIs(t, <-done, invalidation.Closed)
	})
}

func TestWaitForEndsWithARefusal(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.ready()
		done := waiting(func() error { return w.store.WaitForVersion(t.Context(), "5000") })
		w.Break(wiretest.All, wiretest.Answer(forbidden()))
		w.End()
		err := <-done
		assert.ErrorIs(t, err, invalidation.Forbidden)
		assert.EqualValues(t, 403, statusCode(t, err))
	})
}

// C49: bookmarks count, and a deletion is waited for until its UID is gone.
func TestC49BookmarksAndDeletions(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("own", "1"))
		w.ready()
		old, err := w.store.Get(t.Context(), named("own"))
		require.NoError(t, err)

		w.Skip(10)
		done := waiting(func() error { return w.store.WaitForVersion(t.Context(), fmt.Sprint(w.Version())) })
		stillWaiting(t, done)
		after(2 * time.Minute)
		require.NoError(t, <-done)

		done = waiting(func() error { return w.store.WaitForDeletion(t.Context(), old) })
		w.maps.Set(configMap("own", "2"))
		stillWaiting(t, done)
		w.maps.Delete("default", "own")
		w.maps.Set(configMap("own", "3"))
		require.NoError(t, <-done)
		require.NoError(t, w.store.WaitForDeletion(t.Context(), old), "at once, the second time")
	})
}

func TestWaitsRefuseWhatCannotBeWaitedFor(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.ready()
		assert.ErrorContains(t, w.store.WaitFor(t.Context(), configMap("a", "1")), "without a resource version")
		assert.ErrorContains(t, w.store.WaitForVersion(t.Context(), ""), "without a resource version")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.store.WaitForVersion(ctx, "5000")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, safestore.ErrNotReady)
	})
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		start := time.Now()
		assert.ErrorIs(t, w.store.Sync(t.Context()), safestore.ErrNotStarted)
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}

// Sync is a barrier: what was committed before it is visible after it, on a
// stream that is behind as on one that is not; and a hundred callers share its
// requests.
func TestSync(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.ready()
		for i := range 50 {
			w.maps.Set(configMap("a", fmt.Sprint(i)))
			if i%2 == 0 {
				w.Skip(3)
			}
			require.NoError(t, w.store.Sync(t.Context()))
			snapshot, err := w.store.Snapshot()
			require.NoError(t, err)
			got, err := snapshot.Get(named("a"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), got.Data["key"])
		}

		before := w.count(wiretest.Lists)
		heal := w.Break(wiretest.Lists, wiretest.Slow(time.Second))
		var all []<-chan error
		for range 100 {
			all = append(all, waiting(func() error { return w.store.Sync(t.Context()) }))
		}
		for _, done := range all {
			require.NoError(t, <-done)
		}
		heal()
		assert.LessOrEqual(t, w.count(wiretest.Lists)-before, 2, "one under way, and one for who came after")
	})
}

// A barrier that is asked for while there is no stream is kept for the next one.
func TestSyncAcrossTrouble(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.ready()
		w.Down()
		w.maps.Set(configMap("a", "2"))
		done := waiting(func() error { return w.store.Sync(t.Context()) })
		after(20 * time.Second)
		stillWaiting(t, done)
		w.Up()
		require.NoError(t, <-done)
		w.same()

		w.Stall()
		w.maps.Set(configMap("a", "3"))
		require.NoError(t, w.store.Sync(t.Context()), "found stuck by the proof, and healed")
		w.same()

		heal := w.Break(wiretest.Lists, wiretest.Answer(failure("no")))
		done = waiting(func() error { return w.store.Sync(t.Context()) })
		after(time.Minute)
		stillWaiting(t, done)
		heal()
		require.NoError(t, <-done)
	})
}

// A relist without a gap: reads go on, and both edges are seen.
func TestGaplessRelist(t *testing.T) {
	opts := safestore.Options{GaplessRelist: true}
	onWire(t, opts, func(t *testing.T, w *wire) {
		w.onLists()
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		after(time.Minute)
		w.Break(wiretest.Lists, wiretest.Slow(10*time.Second))
		w.maps.Set(configMap("a", "2"))
		w.Send(wiretest.ErrorEvent(expired))
		for range 100 {
			_, err := w.store.Snapshot()
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		assert.Same(t, first, w.store.Token(), "kept while the list is slow")
		after(2 * time.Second)
		assert.EqualValues(t, 2, w.store.Token().Generation())
		assert.ErrorIs(t, first.Cause(), invalidation.Relist)
		assert.Equal(t, []string{"ready 1", "revoked 1 Relist", "ready 2"}, w.hooks())
		w.same()
	})
}

// It ends where the bound does.
func TestGaplessRelistIsBounded(t *testing.T) {
	for name, opts := range map[string]safestore.Options{
		"by MaxStaleness": {GaplessRelist: true, MaxStaleness: 20 * time.Second},
		"by MaxSilence":   {GaplessRelist: true, Watch: watcher.Options{MaxSilence: 20 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, opts, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				first := w.ready()
				w.Break(wiretest.All, wiretest.Answer(failure("not now")))
				w.Send(wiretest.ErrorEvent(expired))
				w.over(first, invalidation.Stale, 10*time.Second, 20*time.Second+1)
				assert.ErrorContains(t, w.notReady(), "not now")
				w.Heal()
				w.readyAfter(0, time.Minute)
			})
		})
	}
}

// Tokens that do not last make the next ones wait, longer each time, until one
// lasts.
func TestDamping(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		tok := w.ready()
		var waits []time.Duration
		for range 10 {
			require.True(t, w.store.Revoke(tok, errors.New("again")))
			start := time.Now()
			tok = w.readyAfter(0, time.Minute)
			waits = append(waits, time.Since(start))
			assert.False(t, w.store.Status().Damped.After(time.Now()))
		}
		t.Log(waits)
		assert.Zero(t, waits[0])
		assert.Zero(t, waits[1])
		for i, least := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
			full := least * time.Second
			assert.GreaterOrEqual(t, waits[i+2], full*8/10)
			assert.LessOrEqual(t, waits[i+2], full+2*time.Second, "and a proof")
		}
		after(3 * time.Minute)
		require.True(t, w.store.Revoke(tok, errors.New("once more")))
		w.readyAfter(0, 0)
	})
}

// A version that a program remembers across restarts is not undercut.
func TestMinVersion(t *testing.T) {
	onWire(t, watchOptions(watcher.Options{MinVersion: "1005"}), func(t *testing.T, w *wire) {
		w.Skip(10)
		w.maps.Set(configMap("a", "1"))
		w.ready()
		assert.EqualValues(t, 1, w.store.Token().Generation())
	})
	onWire(t, watchOptions(watcher.Options{MinVersion: "5000"}), func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.run()
		w.readyAfter(0, time.Minute)
		assert.ErrorIs(t, w.store.Status().Revocation, invalidation.Rewound, "it is said before the older state is shown")
		w.same()
	})
}
