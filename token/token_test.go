package token

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errTest = errors.New("the reason")

func TestTokenLife(t *testing.T) {
	pending := func(s *Source) *Token { return s.Current() }
	ready := func(s *Source) *Token { tok := s.Current(); s.Ready(tok); return tok }
	revoked := func(s *Source) *Token { tok := s.Current(); s.Revoke(tok, errTest); return tok }
	used := func(s *Source) *Token { tok := ready(s); s.Revoke(tok, errTest); return tok }

	for name, tc := range map[string]struct {
		from               func(*Source) *Token
		state              State
		canReady, canEnd   bool
		wasReady, readyEnd bool // WasReady and the Ready channel
	}{
		"Pending":              {from: pending, state: Pending, canReady: true, canEnd: true},
		"Ready":                {from: ready, state: Ready, canEnd: true, wasReady: true, readyEnd: true},
		"Revoked before Ready": {from: revoked, state: Revoked},
		"Revoked after Ready":  {from: used, state: Revoked, wasReady: true, readyEnd: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSource(t.Context())
			tok := tc.from(s)
			assert.Equal(t, tc.state, tok.State())
			assert.Equal(t, tc.wasReady, tok.WasReady())
			assert.Equal(t, tc.readyEnd, isClosed(tok.Ready()))
			assert.Equal(t, tc.state == Revoked, isClosed(tok.Context().Done()))
			if tc.state == Revoked {
				assert.Same(t, errTest, tok.Cause())
			} else {
				assert.NoError(t, tok.Cause())
			}
			assert.Equal(t, tc.canReady, s.Ready(tok))

			s = NewSource(t.Context())
			tok = tc.from(s)
			fresh, ok := s.Revoke(tok, errors.New("another reason"))
			assert.Equal(t, tc.canEnd, ok)
			assert.Same(t, s.Current(), fresh)
			assert.Equal(t, Revoked, tok.State(), "revoked by now, whoever did it")
			assert.Equal(t, Pending, fresh.State())
			assert.EqualValues(t, 2, fresh.Generation())
		})
	}
}

func TestStateString(t *testing.T) {
	assert.Equal(t, "Pending", Pending.String())
	assert.Equal(t, "Ready", Ready.String())
	assert.Equal(t, "Revoked", Revoked.String())
	assert.Equal(t, "Invalid", State(7).String())
}

func TestContextDerivesFromParent(t *testing.T) {
	type key struct{}
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	s := NewSource(parent)
	tok := s.Current()
	s.Ready(tok)
	assert.Equal(t, "value", tok.Context().Value(key{}))
	cancel(errTest)
	assert.Equal(t, Revoked, tok.State())
	assert.Same(t, errTest, tok.Cause())
	_, err := s.Wait(t.Context())
	assert.ErrorIs(t, err, ErrClosed)
	assert.ErrorIs(t, err, errTest)
}

func TestTie(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		s := NewSource(t.Context())
		tok := s.Current()
		s.Ready(tok)

		request, endRequest := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		defer endRequest()

		byToken, cancel := tok.Tie(request)
		defer cancel()
		byRequest, cancel := tok.Tie(request)
		defer cancel()
		byCaller, cancel := tok.Tie(request)
		cancel()
		assert.Equal(t, "value", byToken.Value(key{}))
		assert.ErrorIs(t, byCaller.Err(), context.Canceled)
		assert.NoError(t, byToken.Err(), "siblings are not concerned")

		time.Sleep(time.Second)
		synctest.Wait()
		assert.ErrorIs(t, byRequest.Err(), context.DeadlineExceeded)
		assert.ErrorIs(t, context.Cause(byRequest), context.DeadlineExceeded)

		byToken, cancel = tok.Tie(t.Context())
		defer cancel()
		derived, cancel := context.WithCancel(byToken)
		defer cancel()
		s.Revoke(tok, errTest)
		assert.Same(t, errTest, context.Cause(byToken), "when Revoke returns")
		assert.Same(t, errTest, context.Cause(derived))

		late, cancel := tok.Tie(t.Context())
		defer cancel()
		assert.Same(t, errTest, context.Cause(late), "no head start on a revoked token")

		// The source's parent ends it as well, and what has been let go is forgotten.
		parent, endParent := context.WithCancelCause(t.Context())
		last := NewSource(parent).Current()
		byParent, cancel := last.Tie(t.Context())
		defer cancel()
		_, cancel = last.Tie(t.Context())
		cancel()
		assert.Len(t, last.tied, 1)
		endParent(errTest)
		synctest.Wait()
		assert.Same(t, errTest, context.Cause(byParent))
	})
}

// C54: work started under one generation ends with it; work under the next one
// is not concerned.
func TestC54WorkEndsWithItsGeneration(t *testing.T) {
	s := NewSource(t.Context())
	old := s.Current()
	require.True(t, s.Ready(old))
	oldWork, cancel := context.WithCancel(old.Context())
	defer cancel()

	fresh, _ := s.Revoke(old, errTest)
	newWork, cancel := context.WithCancel(fresh.Context())
	defer cancel()

	assert.Same(t, errTest, context.Cause(oldWork), "derived contexts are over when Revoke returns")
	assert.NoError(t, newWork.Err())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Whoever finds a token revoked finds that what was tied to it is over, also what is
// being tied at that moment.
func TestTiedWorkIsOverBeforeTheToken(t *testing.T) {
	for range 2000 {
		s := NewSource(context.Background())
		tok := s.Current()
		early, cancelEarly := tok.Tie(t.Context())
		var racing sync.WaitGroup
		racing.Go(func() { s.Revoke(tok, errTest) })
		racing.Go(func() {
			for tok.State() != Revoked {
				late, cancelLate := tok.Tie(t.Context())
				if tok.State() == Revoked {
					assert.Error(t, late.Err(), "tied while it ended")
				}
				cancelLate()
			}
			assert.Error(t, early.Err(), "tied before")
		})
		racing.Wait()
		cancelEarly()
	}
}
