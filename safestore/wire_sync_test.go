package safestore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// The first fill: it never ends, or ends too early.

func TestC8FirstListFails(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		heal := w.Break(wiretest.All, wiretest.Answer(failure("etcd is on fire")))
		w.run()
		for range 10 {
			err := w.notReady()
			assert.EqualValues(t, 500, statusCode(t, err))
			assert.ErrorContains(t, err, "etcd is on fire")
			after(30 * time.Second)
		}
		heal()
		w.readyAfter(0, 45*time.Second) // the longest pause
		w.same()
		assert.Equal(t, []string{"ready 1"}, w.hooks())
	})
}

func TestC8NeverStarted(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		_, err := w.store.Snapshot()
		require.ErrorIs(t, err, safestore.ErrNotStarted)
		start := time.Now()
		_, err = w.store.Get(t.Context(), named("a"))
		require.ErrorIs(t, err, safestore.ErrNotStarted)
		require.ErrorIs(t, err, safestore.ErrNotReady)
		assert.Equal(t, 2*time.Second, time.Since(start), "not a hang")
		assert.Zero(t, w.count(wiretest.All))
	})
}

// A server that does not send the end marker of a WatchList, in the ways that
// were seen, and one that does.
func TestC9NoMarker(t *testing.T) {
	objects := func(n int) func(*wire) {
		return func(w *wire) {
			for i := range n {
				w.maps.Set(configMap(fmt.Sprint(i), "1"))
			}
		}
	}
	for name, test := range map[string]struct {
		set    func(*wire)
		fault  wiretest.Fault
		opts   watcher.Options
		within time.Duration
	}{
		"a: open and silent":      {objects(3), wiretest.Together(wiretest.NoMarker, wiretest.NoTimeout), watcher.Options{}, 10 * time.Second},
		"a: and no objects":       {objects(0), wiretest.Together(wiretest.NoMarker, wiretest.NoTimeout), watcher.Options{}, 10 * time.Second},
		"a: not even headers":     {objects(0), wiretest.Together(wiretest.NoMarker, wiretest.HeldHeaders), watcher.Options{}, 10 * time.Second},
		"a: stuck at the start":   {objects(3), wiretest.Stalled, watcher.Options{}, 10 * time.Second},
		"a: and hangs":            {objects(3), wiretest.Hang, watcher.Options{}, 10 * time.Second},
		"b: closed before":        {objects(3), wiretest.Together(wiretest.NoMarker, wiretest.EndsAfter(3*time.Second)), watcher.Options{}, 3 * time.Second},
		"b: closed after 3 min":   {objects(3), wiretest.Together(wiretest.NoMarker, wiretest.NoBookmarks, wiretest.EndsAfter(3*time.Minute)), watcher.Options{InitialEventsTimeout: time.Hour}, 3 * time.Minute},
		"b: closed at once":       {objects(0), wiretest.Respond(200, nil, ""), watcher.Options{}, 0},
		"c: without annotation":   {objects(3), wiretest.BareMarker, watcher.Options{}, 10 * time.Second},
		"d: empty and no marker":  {objects(0), wiretest.NoMarker, watcher.Options{}, 10 * time.Second},
		"e: marker":               {objects(3), wiretest.Together(), watcher.Options{}, 0},
		"refused: 422":            {objects(3), wiretest.Answer(wiretest.NoWatchList()), watcher.Options{}, 0},
		"refused: 400":            {objects(3), wiretest.Answer(apierrors.NewBadRequest("what?")), watcher.Options{}, 0},
		"another limit is chosen": {objects(3), wiretest.NoMarker, watcher.Options{InitialEventsTimeout: 3 * time.Second}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, watchOptions(test.opts), func(t *testing.T, w *wire) {
				test.set(w)
				w.Break(wiretest.Initial, test.fault)
				w.run()
				if test.within > 0 {
					after(test.within - time.Nanosecond)
					w.notReady() // nothing partial is shown
				}
				w.readyAfter(0, time.Nanosecond)
				w.same()
				assert.Equal(t, []string{"ready 1"}, w.hooks())
				assert.Equal(t, 1, w.count(wiretest.Initial))
				refused := w.store.Status().Watch.WatchListRefused
				if name == "e: marker" {
					assert.Empty(t, refused)
					assert.Zero(t, w.count(wiretest.Lists))
					return
				}
				tries := 1
				if name == "b: closed at once" {
					tries = 3 // it may have been the network's doing
				} else {
					assert.NotEmpty(t, refused, "the status says why")
				}

				// The choice is remembered.
				for i := range tries {
					w.maps.Set(configMap(fmt.Sprint("later", i), "1"))
					w.Compact()
					w.Send(wiretest.ErrorEvent(apierrors.NewResourceExpired("gone")))
					synctest.Wait()
					w.readyAfter(0, 10*time.Second) // the third of them in a row is damped, and proven
					w.same()
				}
				assert.Equal(t, tries, w.count(wiretest.Initial))
				assert.NotEmpty(t, w.store.Status().Watch.WatchListRefused)
			})
		})
	}
}

// Events of a busy collection must not keep the missing marker from being missed.
func TestC9BusyCollectionWithoutMarker(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*wire, int)
		within time.Duration
	}{
		"updates": {func(w *wire, i int) { w.maps.Set(configMap("a", fmt.Sprint(i))) }, 12 * time.Second},
		"both": {func(w *wire, i int) {
			w.maps.Set(configMap(fmt.Sprint(i), "1"))
			w.maps.Delete("default", fmt.Sprint(i))
		}, 12 * time.Second},
		// What is created looks like what was there. A bookmark that is not the
		// marker comes after a minute, and would not come before the marker.
		"creations": {func(w *wire, i int) { w.maps.Set(configMap(fmt.Sprint(i), "1")) }, 72 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				w.Break(wiretest.Initial, wiretest.Together(wiretest.NoMarker, wiretest.NoTimeout))
				w.maps.Set(configMap("a", "0"))
				w.run()
				for i := 0; w.store.Token().State() != token.Ready; i++ {
					require.Less(t, time.Since(w.began), test.within, "not ready")
					after(time.Second)
					test.change(w, i)
					synctest.Wait()
				}
				w.same()
			})
		})
	}
}

func TestC13OutageIsNotEmptiness(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.Down()
		w.run()
		after(5 * time.Minute)
		err := w.notReady()
		assert.ErrorContains(t, err, "connection refused")
		w.Up()
		w.readyAfter(0, 45*time.Second)
		w.same()
	})
}

func TestC14WaitReady(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		heal := w.Break(wiretest.All, wiretest.Answer(forbidden()))
		type result struct {
			tok *token.Token
			err error
		}
		wait := func(ctx context.Context) <-chan result {
			c := make(chan result, 1)
			go func() {
				tok, err := w.store.WaitReady(ctx)
				c <- result{tok, err}
			}()
			return c
		}

		// Waiters that are there before Run are served as those after it.
		early := wait(t.Context())
		w.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := <-wait(ctx)
		require.ErrorIs(t, r.err, invalidation.Forbidden, "it ends with the reason")
		require.ErrorIs(t, r.err, context.DeadlineExceeded)
		heal()
		first := (<-early).tok
		require.NotNil(t, first)
		assert.EqualValues(t, 2, first.Generation(), "the refusal ended generation 1")

		// After a revocation they wait for the next generation.
		hold := w.Break(wiretest.All, wiretest.Hang)
		require.True(t, w.store.Revoke(first, errors.New("just so")))
		second := wait(t.Context())
		after(time.Second)
		require.Empty(t, second)
		hold()
		tok := (<-second).tok
		require.NotNil(t, tok)
		assert.EqualValues(t, 3, tok.Generation())

		// When nobody drives the feed any more it ends with an error.
		w.Break(wiretest.All, wiretest.Hang)
		w.store.Revoke(tok, nil)
		third := wait(t.Context())
		synctest.Wait()
		w.stop(errors.New("enough"))
		r = <-third
		require.ErrorIs(t, r.err, invalidation.Closed)
		assert.ErrorContains(t, r.err, "enough")
	})
}

// The failure of one type is no other's business.
func TestC22ConversionWebhook(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		secrets := wiretest.Kind{GroupVersionResource: wiretest.ConfigMaps.GroupVersion().WithResource("secrets"), Kind: "Secret"}
		w.Resource(secrets)
		heal := w.Break(wiretest.Of(wiretest.ConfigMaps, wiretest.All),
			wiretest.Answer(failure("conversion webhook for example.com/v1, Kind=Thing failed")))
		other, err := safestore.New[*corev1.Secret](watcher.ListWatch(kubernetes.NewForConfigOrDie(w.Config()).CoreV1().Secrets("")), safestore.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go other.Run(ctx)
		w.run()
		tok, err := other.WaitReady(t.Context())
		require.NoError(t, err)
		assert.ErrorContains(t, w.notReady(), "conversion webhook for example.com/v1, Kind=Thing failed")
		after(10 * time.Minute)
		assert.Equal(t, token.Ready, tok.State())
		heal()
		w.readyAfter(0, 45*time.Second)
		w.same()
	})
}

func TestC60FourErrors(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		heal := w.Break(wiretest.All, wiretest.Hang)
		w.run()
		_, err := w.store.Snapshot()
		require.ErrorIs(t, err, safestore.ErrNotReady, "a read without waiting is an error, not an empty answer")

		is := func(err error, want ...error) {
			t.Helper()
			for _, target := range []error{context.Canceled, context.DeadlineExceeded, invalidation.Closed, invalidation.Forbidden} {
				wanted := false
				for _, x := range want {
					wanted = wanted || x == target
				}
				assert.Equal(t, wanted, errors.Is(err, target), "%v in: %v", target, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = w.store.WaitReady(ctx)
		is(err, context.Canceled)

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = w.store.WaitReady(ctx)
		is(err, context.DeadlineExceeded)

		heal()
		w.Break(wiretest.All, wiretest.Answer(forbidden()))
		w.Cut()
		after(time.Minute)
		_, err = w.store.Snapshot()
		is(err, invalidation.Forbidden)

		w.stop(errors.New("shutting down"))
		synctest.Wait()
		_, err = w.store.WaitReady(t.Context())
		is(err, invalidation.Closed)
	})
}

// Something on the way answers with JSON that is no list. To a typed client it
// looks like an empty list without a version.
func TestC13AnswerThatIsNoList(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.onLists()
		w.maps.Set(configMap("a", "1"))
		w.ready()
		heal := w.Break(wiretest.Lists, wiretest.Respond(200, nil, `{"message":"maintenance"}`))
		w.Break(wiretest.Resumed, wiretest.Answer(expired))
		w.Cut()
		for range 100 {
			after(time.Second)
			if snapshot, err := w.store.Snapshot(); err == nil {
				require.NotZero(t, snapshot.Len(), "an error surfaced as an empty set")
			}
		}
		heal()
	})
}
