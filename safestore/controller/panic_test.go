package controller_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
