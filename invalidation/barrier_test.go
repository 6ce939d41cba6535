package invalidation_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// A function hears of each revocation once, in order and one call at a time; each
// call has its own time. Panics and ended goroutines are returns.
func TestBarrierCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b invalidation.Barrier
		var panics []any
		lifted := 0
		b.Panicked = func(v any) { panics = append(panics, v) }
		b.Lifted = func() { lifted++ }
		assert.True(t, b.Empty())
		assert.NoError(t, b.Wait(t.Context()))

		began := time.Now()
		var heard []uint64
		var starts []time.Duration
		remove := b.Add(10*time.Second, func(ctx context.Context, r *invalidation.Revocation) {
			heard = append(heard, r.Generation)
			starts = append(starts, time.Since(began))
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, 10*time.Second, deadline.Sub(began), "since the revocation, not the call")
			time.Sleep(2 * time.Second)
			switch r.Generation {
			case 1:
				panic("in a hook")
			case 2:
				runtime.Goexit()
			}
		})
		for generation := range uint64(3) {
			b.Revoked(&invalidation.Revocation{Generation: generation + 1})
		}
		assert.Equal(t, 10*time.Second, b.Remaining())
		assert.NoError(t, b.Wait(t.Context()))
		assert.Equal(t, []uint64{1, 2, 3}, heard)
		assert.Equal(t, []time.Duration{0, 2 * time.Second, 4 * time.Second}, starts)
		assert.Equal(t, []any{"in a hook"}, panics)
		assert.Zero(t, b.Remaining())
		synctest.Wait()
		assert.Equal(t, 1, lifted, "when the last one has returned")

		// Removed, also from inside, a function holds back nothing.
		remove()
		assert.Equal(t, 1, lifted, "it held back nothing")
		var removeSelf func()
		removeSelf = b.Add(time.Minute, func(context.Context, *invalidation.Revocation) {
			removeSelf()
			assert.Zero(t, b.Remaining())
			time.Sleep(time.Second)
		})
		b.Revoked(&invalidation.Revocation{Generation: 4})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, b.Wait(ctx), context.DeadlineExceeded, "it is under way")
		assert.NoError(t, b.Wait(t.Context()))
		assert.True(t, b.Empty())
	})
}

func TestBarrierMisuse(t *testing.T) {
	var b invalidation.Barrier
	assert.PanicsWithValue(t, "invalidation: a barrier's function is nil", func() { b.Add(time.Second, nil) })
	assert.PanicsWithValue(t, "invalidation: a barrier's limit is not positive", func() {
		b.Add(0, func(context.Context, *invalidation.Revocation) {})
	})
}

// What is removed hears of nothing more: not of the revocations that it was late for.
func TestBarrierRemovedDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b invalidation.Barrier
		lifted := 0
		b.Lifted = func() { lifted++ }
		var heard []uint64
		remove := b.Add(time.Minute, func(_ context.Context, r *invalidation.Revocation) {
			heard = append(heard, r.Generation)
			time.Sleep(10 * time.Second)
		})
		b.Revoked(&invalidation.Revocation{Generation: 1})
		b.Revoked(&invalidation.Revocation{Generation: 2})
		time.Sleep(time.Second)
		remove()
		assert.Zero(t, b.Remaining())
		assert.Equal(t, 1, lifted, "its hold is gone")
		assert.NoError(t, b.Wait(t.Context()), "the call under way is waited for")
		time.Sleep(time.Minute)
		assert.Equal(t, []uint64{1}, heard)
	})
}
