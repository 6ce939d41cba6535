package safestore_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

func shareMaps(t *testing.T, ctx context.Context) (shared *safestore.Shared[*corev1.ConfigMap], made *int) {
	t.Helper()
	client := fake.NewClientset(configMap("a", "1"))
	made = new(int)
	return safestore.NewShared(ctx, func() (*safestore.Store[*corev1.ConfigMap], error) {
		*made++
		return safestore.New[*corev1.ConfigMap](watcher.ListWatch(client.CoreV1().ConfigMaps("")), safestore.Options{})
	}), made
}

// C45: what is shared ends with the last who holds it, and with nobody before.
func TestC45SharedUntilTheLastLetsGo(t *testing.T) {
	shared, made := shareMaps(t, t.Context())
	first, releaseFirst, err := shared.Acquire()
	require.NoError(t, err)
	second, releaseSecond, err := shared.Acquire()
	require.NoError(t, err)
	assert.Same(t, first, second)
	tok, err := first.WaitReady(t.Context())
	require.NoError(t, err)

	releaseFirst()
	releaseFirst()
	_, err = second.Get(t.Context(), keyA)
	assert.NoError(t, err, "the other one goes on, however often the first lets go")
	assert.NoError(t, tok.Context().Err())

	releaseSecond()
	shared.Wait()
	assert.ErrorIs(t, second.NotReady(), invalidation.Closed)
	assert.ErrorContains(t, second.NotReady(), "nobody holds the shared store any more")
	assert.Equal(t, 1, *made)

	third, release, err := shared.Acquire()
	require.NoError(t, err)
	assert.NotSame(t, first, third, "a store runs once: it is another one")
	_, err = third.Get(t.Context(), keyA)
	assert.NoError(t, err)
	release()
	shared.Wait()
}

// C45: a forced stop is told to everybody, with its cause.
func TestC45ForcedStop(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	shared, _ := shareMaps(t, ctx)
	var stores []*safestore.Store[*corev1.ConfigMap]
	for range 3 {
		store, release, err := shared.Acquire()
		require.NoError(t, err)
		defer release()
		_, err = store.WaitReady(t.Context())
		require.NoError(t, err)
		stores = append(stores, store)
	}
	over := errors.New("the cluster was removed")
	stop(over)
	shared.Wait()
	for _, store := range stores {
		assert.ErrorIs(t, store.NotReady(), invalidation.Closed)
		assert.ErrorIs(t, store.NotReady(), over)
	}
	_, _, err := shared.Acquire()
	assert.ErrorIs(t, err, over)
}

func TestSharedFromManyGoroutines(t *testing.T) {
	shared, made := shareMaps(t, t.Context())
	var users sync.WaitGroup
	for range 50 {
		users.Go(func() {
			store, release, err := shared.Acquire()
			if !assert.NoError(t, err) {
				return
			}
			defer release()
			_, err = store.Get(t.Context(), keyA)
			assert.NoError(t, err, "nobody ends it for those who hold it")
		})
	}
	users.Wait()
	shared.Wait()
	assert.Positive(t, *made)
}

// Somebody waits for the end while others come and go.
func TestSharedWaitBesideAcquire(t *testing.T) {
	shared, _ := shareMaps(t, t.Context())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				_, release, err := shared.Acquire()
				if !assert.NoError(t, err) {
					return
				}
				release()
			}
		})
		all.Go(func() {
			for range 200 {
				shared.Wait()
			}
		})
	}
	all.Wait()
	shared.Wait()
}

func TestSharedMisuse(t *testing.T) {
	assert.PanicsWithValue(t, "safestore: NewShared with a nil argument", func() {
		safestore.NewShared[*corev1.ConfigMap](t.Context(), nil)
	})
	no := errors.New("no")
	shared := safestore.NewShared(t.Context(), func() (*safestore.Store[*corev1.ConfigMap], error) { return nil, no })
	_, _, err := shared.Acquire()
	assert.ErrorIs(t, err, no)
	shared.Wait()

	shared = safestore.NewShared(t.Context(), func() (*safestore.Store[*corev1.ConfigMap], error) { return nil, nil })
	_, _, err = shared.Acquire()
	assert.EqualError(t, err, "safestore: a shared store was made without a store, and without an error")

	// The same store each time is none that can run: nobody is given it.
	client := fake.NewClientset()
	one, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(client.CoreV1().ConfigMaps("")), safestore.Options{})
	require.NoError(t, err)
	shared = safestore.NewShared(t.Context(), func() (*safestore.Store[*corev1.ConfigMap], error) { return one, nil })
	_, release, err := shared.Acquire()
	require.NoError(t, err)
	_, err = one.WaitReady(t.Context())
	require.NoError(t, err)
	release()
	shared.Wait()
	_, _, err = shared.Acquire()
	assert.ErrorIs(t, err, safestore.ErrRunTwice)
}
