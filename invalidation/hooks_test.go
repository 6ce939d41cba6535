package invalidation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/token"
)

// journal records the calls of hooks.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.lines...)
}

// tokens returns n tokens of one source, the last one not revoked.
func tokens(t *testing.T, n int) []*token.Token {
	s := token.NewSource(t.Context())
	all := []*token.Token{s.Current()}
	for len(all) < n {
		next, _ := s.Revoke(all[len(all)-1], errors.New("next"))
		all = append(all, next)
	}
	return all
}

func TestHooksHearEveryTransitionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hooks
		var j journal
		h.OnReady(func(tok *token.Token) { j.add("ready %d", tok.Generation()) })
		h.OnRevoke(func(r *Revocation) { j.add("revoked %d", r.Generation) })
		var want []string
		for _, tok := range tokens(t, 5) {
			h.Ready(tok)
			h.Revoked(&Revocation{Generation: tok.Generation()})
			want = append(want, fmt.Sprintf("ready %d", tok.Generation()), fmt.Sprintf("revoked %d", tok.Generation()))
		}
		require.NoError(t, h.Wait(t.Context()))
		assert.Equal(t, want, j.all())
	})
}

// While hooks are patient with each other, a revoke hook does not begin before
// every ready hook has returned.
func TestHooksOfTwoTransitionsDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hooks
		var j journal
		h.OnReady(func(*token.Token) {
			time.Sleep(hookPatience - time.Nanosecond)
			j.add("ready hook returns")
		})
		h.OnRevoke(func(*Revocation) { j.add("revoke hook begins") })
		h.Ready(tokens(t, 1)[0])
		h.Revoked(&Revocation{Generation: 1})
		require.NoError(t, h.Wait(t.Context()))
		assert.Equal(t, []string{"ready hook returns", "revoke hook begins"}, j.all())
	})
}

func TestSlowHookDelaysOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hooks
		var slow, quick journal
		release := make(chan struct{})
		h.OnReady(func(tok *token.Token) {
			<-release
			slow.add("ready %d", tok.Generation())
		})
		h.OnReady(func(tok *token.Token) { quick.add("ready %d", tok.Generation()) })
		toks := tokens(t, 3)
		for _, tok := range toks {
			h.Ready(tok)
		}
		time.Sleep(3 * hookPatience)
		synctest.Wait()
		assert.Equal(t, []string{"ready 1", "ready 2", "ready 3"}, quick.all())
		assert.Empty(t, slow.all())
		close(release)
		synctest.Wait()
		assert.Equal(t, []string{"ready 1", "ready 2", "ready 3"}, slow.all(), "later, and still in order")
	})
}

func TestPanickingHookHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		h := Hooks{Panicked: func(v any) { j.add("panic: %v", v) }}
		h.OnReady(func(tok *token.Token) { panic(fmt.Sprint("at ", tok.Generation())) })
		var other journal
		h.OnReady(func(tok *token.Token) { other.add("ready %d", tok.Generation()) })
		for _, tok := range tokens(t, 2) {
			h.Ready(tok)
		}
		require.NoError(t, h.Wait(t.Context()))
		assert.Equal(t, []string{"panic: at 1", "panic: at 2"}, j.all())
		assert.Equal(t, []string{"ready 1", "ready 2"}, other.all())

		var silent Hooks
		silent.OnRevoke(func(*Revocation) { panic("nobody listens") })
		silent.Revoked(&Revocation{})
		require.NoError(t, silent.Wait(t.Context()))
	})
}

func TestLateRegistrationHearsTheCurrentState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hooks
		var j journal
		toks := tokens(t, 2)
		h.Ready(toks[0])
		synctest.Wait()
		h.OnReady(func(tok *token.Token) { j.add("ready %d", tok.Generation()) })
		synctest.Wait()
		assert.Equal(t, []string{"ready 1"}, j.all(), "once, for the current generation")

		h.Revoked(&Revocation{Generation: 1})
		synctest.Wait()
		h.OnReady(func(tok *token.Token) { j.add("later: ready %d", tok.Generation()) })
		synctest.Wait()
		assert.Len(t, j.all(), 1, "not ready: nothing to hear yet")
		h.Ready(toks[1])
		synctest.Wait()
		assert.ElementsMatch(t, []string{"ready 1", "ready 2", "later: ready 2"}, j.all())
	})
}

func TestRemovedHookIsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hooks
		var j journal
		toks := tokens(t, 2)
		remove := h.OnReady(func(*token.Token) { j.add("removed before") })
		remove()
		remove() // twice is harmless
		var removeInside func()
		removeInside = h.OnReady(func(*token.Token) {
			j.add("removed inside")
			removeInside()
		})
		for _, tok := range toks {
			h.Ready(tok)
		}
		require.NoError(t, h.Wait(t.Context()))
		assert.Equal(t, []string{"removed inside"}, j.all())
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hooks
		require.NoError(t, h.Wait(t.Context()), "nothing to wait for")
		release := make(chan struct{})
		h.OnReady(func(*token.Token) { <-release })
		h.Ready(tokens(t, 1)[0])
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, h.Wait(ctx), context.DeadlineExceeded)
		close(release)
	})
}

func TestHooksRefuseNil(t *testing.T) {
	var h Hooks
	assert.Panics(t, func() { h.OnReady(nil) })
	assert.Panics(t, func() { h.OnRevoke(nil) })
}
