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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Whatever a store is doing, it can be stopped: Run returns, readers return, the
// server sees the request closed, and the bubble has no goroutine left.
func TestC44Stop(t *testing.T) {
	third := func(r wiretest.Request) bool { return wiretest.Later(r) }
	for name, test := range map[string]struct {
		prepare func(*wire)
		open    int // requests that the server is answering when it is stopped
	}{
		"during the first list": {func(w *wire) {
			w.Break(wiretest.All, wiretest.Hang)
			w.run()
		}, 1},
		"on page 3": {func(w *wire) {
			w.onLists()
			passed := wiretest.First(1, third)
			w.Break(func(r wiretest.Request) bool { return third(r) && !passed(r) }, wiretest.Hang)
			w.run()
			require.Equal(w.t, 3, w.count(wiretest.Lists))
		}, 1},
		"while a watch is opened": {func(w *wire) {
			w.onLists()
			w.Break(wiretest.Resumed, wiretest.Hang)
			w.run()
		}, 1},
		"while the watch is idle": {func(w *wire) {
			w.run()
			after(time.Hour + time.Second)
		}, 1},
		"while it sleeps": {func(w *wire) {
			w.Down()
			w.run()
			after(time.Hour)
		}, 0},
		"while the server asks to be left alone": {func(w *wire) {
			w.Break(wiretest.All, wiretest.Answer(tooMany(3600)))
			w.run()
		}, 0},
		"while a hook is slow": {func(w *wire) {
			w.store.OnReady(func(*token.Token) { time.Sleep(time.Minute) })
			w.run()
		}, 1},
		"in a black hole": {func(w *wire) {
			w.run()
			w.BlackHole(true)
			after(time.Minute)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, watchOptions(watcher.Options{PageSize: 2}), func(t *testing.T, w *wire) {
				for i := range 10 {
					w.maps.Set(configMap(fmt.Sprint(i), "1"))
				}
				test.prepare(w)
				synctest.Wait()
				require.Equal(t, test.open, w.Open())
				start := time.Now()
				reader := make(chan error, 1)
				if w.store.Token().State() != token.Ready {
					go func() {
						_, err := w.store.List(t.Context())
						reader <- err
					}()
					synctest.Wait()
				} else {
					reader <- invalidation.Closed
				}

				w.stop(errors.New("the end"))
				synctest.Wait()
				require.ErrorIs(t, <-reader, invalidation.Closed)
				_, err := w.store.Snapshot()
				require.ErrorIs(t, err, invalidation.Closed)
				require.NoError(t, <-w.done)
				assert.LessOrEqual(t, time.Since(start), time.Second, "how long Run takes to return")
				w.BlackHole(false)
				synctest.Wait()
				assert.Zero(t, w.Open(), "the server sees it closed")
				after(time.Minute) // the slow hook is the program's own
			})
		})
	}
}

// A source that does not honour its context is left behind: readers return at
// once, and Run after a second.
func TestC44SourceThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := safestore.New[*corev1.ConfigMap](deaf{}, safestore.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		reader, done := make(chan error, 1), make(chan error, 1)
		go func() { done <- store.Run(ctx) }()
		go func() {
			_, err := store.List(t.Context())
			reader <- err
		}()
		after(time.Second)
		start := time.Now()
		cancel()
		assert.ErrorIs(t, <-reader, invalidation.Closed)
		assert.Zero(t, time.Since(start))
		assert.NoError(t, <-done)
		assert.Equal(t, time.Second, time.Since(start))
		after(time.Hour) // its goroutine ends when its request does
	})
}

type deaf struct{ watcher.Source }

func (deaf) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	time.Sleep(time.Hour)
	return nil, errors.New("too late")
}
