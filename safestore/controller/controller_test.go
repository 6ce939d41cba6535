package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/token"
)

// Keys are worked on when something happens to them, and then once.
func TestChangesAreWorkedOn(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		seen := map[string]string{}
		b.start(b.new(controller.Options{}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			maps, err := b.mapStore.In(req.Snapshot)
			require.NoError(t, err)
			seen[req.Key.Name] = "gone"
			if m, err := maps.Get(req.Key); err == nil {
				seen[req.Key.Name] = m.Data["key"]
			}
			return b.does(ctx, req)
		}))
		synctest.Wait()
		assert.Equal(t, map[string]string{"a": "1", "b": "1"}, seen)
		b.history.take()
		b.set("a", "2")
		b.happened("a begins under 1", "a acts under 1", "a is done")
		assert.Equal(t, "2", seen["a"])
		b.maps.Delete("default", "b")
		b.happened("b begins under 1", "b acts under 1", "b is done")
		assert.Equal(t, "gone", seen["b"])
		time.Sleep(time.Hour)
		b.happened()
	})
}

// C54: work under a token ends with it and is done again under the next, which is
// not affected.
func TestC54WorkIsCutWithItsToken(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		var cause error
		started, again := make(chan struct{}), make(chan struct{})
		c := b.new(controller.Options{}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			switch generation := req.Snapshot.Token().Generation(); {
			case generation == 3 && req.Key.Name == "a":
				close(started)
				<-ctx.Done()
				cause = context.Cause(ctx)
				return controller.Result{RequeueAfter: time.Hour}, nil // it knows nothing of its end
			case generation == 4:
				<-again
				assert.NoError(t, ctx.Err())
			}
			return b.does(ctx, req)
		})
		b.start(c)
		for range 2 {
			b.revoke(c)
			time.Sleep(time.Minute) // it is damped
			synctest.Wait()
		}
		b.history.take()
		require.EqualValues(t, 3, c.Readiness().Token().Generation())
		b.set("a", "2")
		<-started
		revoked := time.Now()
		t3 := b.revoke(c)
		synctest.Wait()
		assert.Equal(t, revoked, time.Now(), "at once")
		assert.Same(t, t3.Cause(), cause)
		var r *invalidation.Revocation
		require.ErrorAs(t, cause, &r)
		assert.Equal(t, invalidation.Requested, r.Reason)
		assert.EqualValues(t, 3, r.Generation)
		assert.ErrorIs(t, cause, errTest)

		assert.ElementsMatch(t, []string{"a begins under 3", "3 is over", "a was cut"}, b.history.take())
		time.Sleep(time.Minute)
		b.happened("a begins under 4")
		assert.Equal(t, 1, c.Status().Running)
		close(again)
		b.happened("a acts under 4", "a is done")
		assert.EqualValues(t, 1, c.Status().Cut)
	})
}

// While the stores are not ready keys wait, and none is lost.
func TestNothingBeginsWithoutReadiness(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		c := b.new(controller.Options{Workers: 3}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Key.Name == "a" && req.Snapshot.Token().Generation() == 1 {
				return controller.Result{RequeueAfter: time.Second}, nil
			}
			return b.does(ctx, req)
		})
		b.start(c)
		b.history.take()
		heal := b.Break(wiretest.Of(wiretest.ConfigMaps, wiretest.All), wiretest.Answer(forbidden()))
		b.End() // and what is opened again is refused
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		require.ErrorIs(t, c.Readiness().NotReady(), invalidation.Forbidden)
		b.set("b", "2")
		time.Sleep(time.Hour)
		synctest.Wait()
		b.happened()
		assert.Equal(t, 1, c.Status().Queued, "a, whose time has come")
		heal()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.ElementsMatch(t, []string{
			"a begins under 2", "a acts under 2", "a is done",
			"b begins under 2", "b acts under 2", "b is done",
		}, b.history.take())
	})
}

// After a revocation only what has changed is worked on.
func TestUnchangedObjectsAreNotWorkedOnAgain(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		c := b.new(controller.Options{}, b.does)
		b.start(c)
		b.history.take()
		b.revoke(c)
		b.set("b", "2")
		time.Sleep(time.Minute)
		b.happened("1 is over", "b begins under 2", "b acts under 2", "b is done")
	})
}

// All stores have to be ready, those without changes of interest as well.
func TestSeveralStores(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		heal := b.Break(wiretest.Of(secretsKind, wiretest.All), wiretest.Answer(forbidden()))
		b.secStore.Revoke(b.secStore.Token(), errTest)
		synctest.Wait()
		c := b.new(controller.Options{}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			secrets, err := b.secStore.In(req.Snapshot)
			require.NoError(t, err)
			assert.Equal(t, 0, secrets.Len())
			return b.does(ctx, req)
		}, controller.For(b.mapStore), controller.Reads(b.secStore))
		b.start(c)
		time.Sleep(time.Minute)
		b.happened()
		err := c.Readiness().NotReady()
		require.ErrorIs(t, err, safestore.ErrNotReady)
		assert.ErrorIs(t, err, invalidation.Forbidden)
		heal()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.Len(t, b.history.take(), 6)
	})
}

// A change concerns the keys that it takes something away from, and those that it
// brings something to.
func TestWatchesMapsOldAndNew(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		refersTo := func(m *corev1.ConfigMap) []types.NamespacedName {
			return []types.NamespacedName{{Name: m.Data["key"]}}
		}
		b.start(b.new(controller.Options{}, b.does, controller.Watches(b.mapStore, controller.OldAndNew(refersTo))))
		synctest.Wait()
		assert.Contains(t, b.history.take(), "1 is done") // for a and b, once or twice
		b.set("a", "2")
		synctest.Wait()
		assert.Subset(t, b.history.take(), []string{"1 is done", "2 is done"})
		b.maps.Delete("default", "a")
		b.happened("2 begins under 1", "2 acts under 1", "2 is done")
	})
}

func TestFailuresBackOffEachForItself(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		var failed []time.Duration
		began := time.Now()
		var fails atomic.Bool
		fails.Store(true)
		c := b.new(controller.Options{}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Key.Name == "a" && fails.Load() {
				failed = append(failed, time.Since(began))
				return controller.Result{RequeueAfter: time.Nanosecond}, errTest
			}
			return b.does(ctx, req)
		})
		b.start(c)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		ms := time.Millisecond
		assert.Equal(t, []time.Duration{0, 5 * ms, 15 * ms, 35 * ms, 75 * ms}, failed)
		logged := b.logged.take()
		require.Len(t, logged, 5)
		assert.Equal(t, `"Reconcile failed" err="the test says so" controller="test" key="default/a"`, logged[0])

		fails.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.history.take()
		fails.Store(true)
		failed, began = nil, time.Now()
		b.set("a", "2")
		time.Sleep(12 * ms)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 5 * ms}, failed, "success has reset it")
		assert.EqualValues(t, 7, c.Status().Failed)
		assert.EqualValues(t, 2, c.Status().Succeeded)
	})
}

func TestRequeueAfter(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.maps.Delete("default", "b")
		c := b.new(controller.Options{}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			_, err := b.does(ctx, req)
			return controller.Result{RequeueAfter: time.Minute}, err
		})
		b.start(c)
		b.history.take()
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Contains(t, b.history.take(), "a is done")
		}
	})
}

// Leaderships end without a word. Work ends with them, and Run when it has.
func TestC54WorkEndsWithRun(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		causes := make(chan error, 2)
		c := b.new(controller.Options{Workers: 2}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			time.Sleep(time.Second) // it takes its time
			return controller.Result{}, nil
		})
		stop := b.start(c)
		assert.Equal(t, 2, c.Status().Running)
		b.set("c", "1")
		synctest.Wait()
		assert.Equal(t, 1, c.Status().Queued)
		began := time.Now()
		stop(errTest)
		assert.Equal(t, time.Second, time.Since(began))
		assert.Same(t, errTest, <-causes)
		assert.Same(t, errTest, <-causes)
		assert.Equal(t, 0, c.Status().Running)
		assert.NotContains(t, b.history.take(), "c begins under 1")
		assert.Equal(t, token.Revoked, c.Readiness().Token().State())
		assert.ErrorIs(t, c.Run(t.Context()), safestore.ErrRunTwice)
	})
}

func TestRunEndsWhenItCannotGoOn(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		for name, test := range map[string]struct {
			source func(context.Context) controller.Source
			want   error
		}{
			"a store was never started": {func(context.Context) controller.Source {
				store, err := safestore.New[*corev1.Secret](b.mapStoreSource(), safestore.Options{})
				require.NoError(t, err)
				return controller.Reads(store)
			}, safestore.ErrNotStarted},
			"a store is closed": {func(ctx context.Context) controller.Source {
				store, err := safestore.New[*corev1.ConfigMap](b.mapStoreSource(), safestore.Options{Name: "other"})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(ctx)
				go store.Run(ctx)
				time.AfterFunc(time.Minute, cancel)
				return controller.For(store)
			}, invalidation.Closed},
		} {
			b.history = newHistory()
			c := b.new(controller.Options{}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
				<-ctx.Done()
				return controller.Result{}, nil
			}, controller.For(b.mapStore), test.source(b.ctx))
			err := c.Run(b.ctx)
			require.Error(t, err, name)
			assert.ErrorContains(t, err, "controller test: ", name)
			if test.want != nil {
				assert.ErrorIs(t, err, test.want, name)
			}
			assert.Zero(t, c.Status().Running)
		}
	})
}

// A context that ends stores as well as controllers is a clean end for both.
func TestRunEndsTogetherWithItsStores(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		for range 100 {
			store, err := safestore.New[*corev1.ConfigMap](b.mapStoreSource(), safestore.Options{})
			require.NoError(t, err)
			b.history = newHistory()
			c := b.new(controller.Options{Workers: 2}, b.does, controller.For(store))
			ctx, cancel := context.WithCancel(b.ctx)
			ended := make(chan error, 2)
			go func() { ended <- store.Run(ctx) }()
			go func() { ended <- c.Run(ctx) }()
			synctest.Wait()
			cancel()
			require.NoError(t, <-ended)
			require.NoError(t, <-ended)
		}
	})
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		twin, err := safestore.New[*corev1.ConfigMap](b.mapStoreSource(), safestore.Options{})
		require.NoError(t, err)
		var none *safestore.Store[*corev1.ConfigMap]
		ok := controller.For(b.mapStore)
		for want, test := range map[string]struct {
			name    string
			f       func(context.Context, controller.Request) (controller.Result, error)
			opts    controller.Options
			sources []controller.Source
		}{
			"without a name":                  {"", b.does, controller.Options{}, []controller.Source{ok}},
			"no reconcile function":           {"x", nil, controller.Options{}, []controller.Source{ok}},
			"Workers is -1":                   {"x", b.does, controller.Options{Workers: -1}, []controller.Source{ok}},
			"there is no source of changes":   {"x", b.does, controller.Options{}, []controller.Source{controller.Reads(b.mapStore)}},
			"the member is nil":               {"x", b.does, controller.Options{}, []controller.Source{controller.For(none)}},
			"group x: the member is nil":      {"x", b.does, controller.Options{}, []controller.Source{ok, {}}},
			`a member "v1.ConfigMap" already`: {"x", b.does, controller.Options{}, []controller.Source{ok, controller.For(twin)}},
		} {
			_, err := controller.New(test.name, test.f, test.opts, test.sources...)
			assert.ErrorContains(t, err, want)
		}
		c, err := controller.New("x", b.does, controller.Options{}, ok, ok, controller.Reads(b.mapStore))
		require.NoError(t, err, "the same store twice")
		assert.Equal(t, "x", c.Name())
		assert.Zero(t, c.Status().Queued)
		assert.Panics(t, func() { controller.Watches(b.mapStore, nil) })
		assert.Panics(t, func() { controller.OldAndNew[*corev1.ConfigMap](nil) })
	})
}
