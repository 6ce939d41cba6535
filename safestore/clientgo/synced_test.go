package clientgo_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// C55: in sync is not for ever.
func TestHasSyncedTellsTheTruthNow(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		synced := clientgo.HasSynced(w.store)
		assert.False(t, synced())
		grant := w.refused()
		assert.False(t, synced())
		grant()
		assert.True(t, synced())
		w.stop(nil)
		synctest.Wait()
		assert.False(t, synced())
	})
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		synced := clientgo.HasSynced(w.store)
		w.run()
		w.BlackHole(true)
		time.Sleep(10 * time.Second)
		assert.True(t, synced())
		time.Sleep(time.Nanosecond)
		assert.False(t, synced())
	})
}

func TestWaitForCacheSync(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		heal := w.Break(wiretest.All, wiretest.Answer(apierrors.NewInternalError(errors.New("no"))))
		w.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		assert.False(t, cache.WaitForCacheSync(ctx.Done(), clientgo.HasSynced(w.store)))
		time.AfterFunc(time.Hour, heal)
		assert.True(t, cache.WaitForCacheSync(t.Context().Done(), clientgo.HasSynced(w.store)))
	})
}

func TestWaitForDoneChecker(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		quiet := klog.NewContext(t.Context(), klog.Logger{})
		heal := w.Break(wiretest.All, wiretest.Answer(apierrors.NewInternalError(errors.New("no"))))
		checker := clientgo.DoneChecker(w.store) // also before Run
		assert.Equal(t, "SafeStore v1.Pod", checker.Name())
		w.run()
		ctx, cancel := context.WithTimeout(quiet, time.Hour)
		defer cancel()
		assert.False(t, cache.WaitFor(ctx, "pods", checker, clientgo.DoneChecker(w.store)))
		assert.False(t, cache.IsDone(checker))
		time.AfterFunc(time.Hour, heal)
		assert.True(t, cache.WaitFor(quiet, "pods", checker, clientgo.DoneChecker(w.store)))
		assert.True(t, cache.IsDone(clientgo.DoneChecker(w.store)), "of a ready store, without a moment's delay")
	})
}

func TestDoneCheckerIsOneWay(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		first := clientgo.DoneChecker(w.store)
		grant := w.refused()
		assert.True(t, cache.IsDone(first))
		second := clientgo.DoneChecker(w.store)
		synctest.Wait()
		assert.False(t, cache.IsDone(second), "it was ready before the call, and is not")
		for range 3 {
			grant()
			assert.True(t, cache.IsDone(second))
			w.store.Revoke(w.store.Token(), nil)
			after(time.Hour)
		}
		assert.NotContains(t, w.log.String(), "panicked", "each hook is called once")
		assert.Contains(t, w.log.String(), "Store is ready")
	})
}

func TestDoneCheckerOfAStoreThatCloses(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Break(wiretest.All, wiretest.Hang)
		checker := clientgo.DoneChecker(w.store)
		w.run()
		w.stop(nil)
		synctest.Wait()
		assert.False(t, cache.IsDone(checker))
		assert.False(t, cache.IsDone(clientgo.DoneChecker(w.store)))
	})
}

// Checkers are made while the store becomes ready, and none misses it.
func TestDoneCheckerRace(t *testing.T) {
	for range 50 {
		store, err := safestore.New[*corev1.Pod](watcher.ListWatch(fake.NewClientset().CoreV1().Pods("")), safestore.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan error)
		go func() { ended <- store.Run(ctx) }()
		var makers sync.WaitGroup
		for range 4 {
			makers.Go(func() {
				for !clientgo.HasSynced(store)() {
					<-clientgo.DoneChecker(store).Done()
				}
			})
		}
		makers.Wait()
		cancel()
		assert.NoError(t, <-ended)
	}
}

func TestSyncedPanicsOnNil(t *testing.T) {
	var none *safestore.Store[*corev1.Pod]
	assert.PanicsWithValue(t, "clientgo: HasSynced with a nil store", func() { clientgo.HasSynced(none) })
	assert.PanicsWithValue(t, "clientgo: DoneChecker with a nil store", func() { clientgo.DoneChecker(none) })
}
