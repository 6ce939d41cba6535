package subject

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/token"
)

// patience is how long a test waits for what must happen. Nothing is expected to
// take that long, on a machine that has other things to do as well.
const patience = 60 * time.Second

var errImpatient = errors.New("the test has no more patience")

func wait(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), patience, errImpatient)
}

// AwaitReady waits until the store is ready.
func (s *Subject) AwaitReady(t testing.TB) *token.Token {
	t.Helper()
	ctx, cancel := wait(t)
	defer cancel()
	ready, err := s.WaitReady(ctx)
	require.NoError(t, err, s.Name)
	return ready
}

// AwaitRevoked waits for the end of a token, and returns why it ended.
func (s *Subject) AwaitRevoked(t testing.TB, ready *token.Token) *invalidation.Revocation {
	t.Helper()
	select {
	case <-ready.Context().Done():
	case <-time.After(patience):
		require.FailNow(t, "not revoked", "%s: %+v\n%v", s.Name, s.Status(), s.Requests.All())
	}
	revocation, ok := errors.AsType[*invalidation.Revocation](ready.Cause())
	require.True(t, ok, "%s: %v", s.Name, ready.Cause())
	return revocation
}

// AwaitContents waits until the store is ready and holds what is wanted.
func (s *Subject) AwaitContents(t testing.TB, wanted Contents) *View {
	t.Helper()
	var last *View
	var err error
	require.Eventually(t, func() bool {
		last, err = s.View()
		return err == nil && last.Contents().Equal(wanted)
	}, patience, 2*time.Millisecond, "%s does not come to hold what the server does", s.Name)
	return last
}

// AwaitRequests waits until the requests made are as wanted, and returns them.
func (s *Subject) AwaitRequests(t testing.TB, what string, wanted func([]requests.Request) bool) []requests.Request {
	t.Helper()
	ctx, cancel := wait(t)
	defer cancel()
	all, err := s.Requests.Await(ctx, wanted)
	require.NoError(t, err, "%s: waiting for %s: %v", s.Name, what, all)
	return all
}
