package controller_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
)

// C38: a panic ends the program, as it does without a controller.
func TestC38PanicsEndTheProgram(t *testing.T) {
	if os.Getenv("CONTROLLER_TEST_PANICS") != "" {
		onBench(t, func(t *testing.T, b *bench) {
			b.start(b.new(controller.Options{}, func(context.Context, controller.Request) (controller.Result, error) {
				panic("as in any program")
			}))
		})
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestC38PanicsEndTheProgram$")
	again.Env = append(os.Environ(), "CONTROLLER_TEST_PANICS=1")
	out, err := again.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 2, exit.ExitCode())
	assert.Contains(t, string(out), "panic: as in any program")
}

// C38: a panic is a failure that is tried again, and says where it was.
func TestC38PanicsCanBeRecovered(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		value := errors.New("secret value")
		c := b.new(controller.Options{RecoverPanics: true}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Key.Name == "a" && value != nil {
				defer func() { value = nil }()
				panic(value)
			}
			return b.does(ctx, req)
		})
		b.start(c)
		time.Sleep(time.Second)
		synctest.Wait()
		history := b.history.take()
		assert.Contains(t, history, "a panics")
		assert.Contains(t, history, "a is done")
		logged := b.logged.take()
		require.Len(t, logged, 1)
		assert.Contains(t, logged[0], `reconcile panicked with a *errors.errorString`)
		assert.Contains(t, logged[0], "panic_test.go")
		assert.NotContains(t, logged[0], "secret value")
		assert.EqualValues(t, 1, c.Status().Failed)
	})
}

// Work that panics because it was cut is done again at once, as all work that was cut.
func TestPanicOfCutWorkDoesNotBackOff(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		calls := 0
		reconcile := func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Key.Name != "a" {
				return controller.Result{}, nil
			}
			switch calls++; {
			case calls <= 8:
				return controller.Result{}, errors.New("so that the backoff is long")
			case calls == 9:
				<-ctx.Done()
				panic("cut")
			default:
				return controller.Result{}, nil
			}
		}
		c, err := controller.New("test", reconcile, controller.Options{RecoverPanics: true}, controller.For(b.mapStore))
		require.NoError(t, err)
		b.start(c)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, 9, calls)
		b.mapStore.Revoke(b.mapStore.Token(), nil)
		_, err = b.mapStore.WaitReady(t.Context())
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 10, calls)
	})
}

// A reconcile function that ends its goroutine, as a failed assertion in a test does, is a
// failure that is tried again, and takes no worker with it.
func TestReconcileThatEndsItsGoroutine(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		worked := map[string]int{}
		reconcile := func(_ context.Context, req controller.Request) (controller.Result, error) {
			if worked[req.Key.Name]++; len(worked) == 1 && worked[req.Key.Name] == 1 {
				runtime.Goexit()
			}
			return controller.Result{}, nil
		}
		c, err := controller.New("test", reconcile, controller.Options{}, controller.For(b.mapStore))
		require.NoError(t, err)
		b.start(c)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, worked, 2)
		assert.Zero(t, c.Status().Running)
		assert.EqualValues(t, 1, c.Status().Failed)
	})
}

// Options of a source that cannot be subscribed to are found by New.
func TestNewRefusesWhatCannotBeSubscribedTo(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		for _, option := range []safestore.ListOption{safestore.Limit(3), safestore.Sorted(), safestore.ByIndex("x", "y")} {
			_, err := controller.New("test", b.does, controller.Options{}, controller.For(b.mapStore, option))
			assert.ErrorContains(t, err, "only namespaces and labels can be subscribed to")
		}
	})
}
