package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/cluster"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

// API servers are killed. A store resumes at its version wherever a server still
// has it, and lists again only on a 410 (C8, C13, C32).
func TestKilled(t *testing.T) {
	t.Parallel()
	e := own(t)
	uncached, err := e.StartReplica(t.Context(), "--watch-cache=false")
	require.NoError(t, err)
	viaUncached := connect(t, e.Cluster, uncached.Config())

	t.Run("the version is still there", func(t *testing.T) {
		testKilled(t, e, uncached, false)
	})
	t.Run("the version is gone", func(t *testing.T) {
		testKilled(t, viaUncached, e.API, true)
	})
	t.Run("another server takes over", func(t *testing.T) {
		testTakeOver(t, viaUncached)
	})
	t.Run("down at the start of the store", func(t *testing.T) {
		testDownAtStart(t, e, viaUncached)
	})
}

// testKilled kills a server and starts it again, with changes in between that
// are made through another one.
func testKilled(t *testing.T, e *env, server *cluster.APIServer, gone bool) {
	namespace := e.namespace(t)
	e.seed(t, namespace)
	subjects := subjectsFor(t, server.Config(), namespace, fast())
	ready := startAll(t, subjects)
	for _, s := range subjects {
		s.AwaitContents(t, e.configMaps(t, namespace))
		s.AwaitRequests(t, "an open watch", isWatching)
	}
	require.NoError(t, server.Kill())
	for _, s := range subjects {
		s.AwaitRequests(t, "failed attempts", hasFailed(2))
		assert.Equal(t, token.Ready, ready[s].State(), "a dead server alone revokes nothing yet")
	}
	e.change(t, namespace, "1")
	after := e.configMaps(t, namespace)
	require.NoError(t, server.Start(t.Context()))
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		view := s.AwaitContents(t, after)
		all := requests.Main(s.Requests.All())
		assert.Empty(t, requests.Unprompted(all))
		if gone {
			assert.Equal(t, invalidation.Relist, s.AwaitRevoked(t, ready[s]).Reason)
			assert.Equal(t, ready[s].Generation()+1, view.Token.Generation())
			return
		}
		assert.Same(t, ready[s], view.Token)
		assert.Len(t, requests.Sets(all), 1, "%v", all)
	})
}

// hasFailed waits for attempts that came to nothing.
func hasFailed(times int) func([]requests.Request) bool {
	return func(all []requests.Request) bool {
		n := 0
		for _, r := range all {
			if r.Failed() {
				n++
			}
		}
		return n >= times
	}
}

// testTakeOver moves the stores to a replica that has been there all the time.
func testTakeOver(t *testing.T, e *env) {
	replica, err := e.StartReplica(t.Context())
	require.NoError(t, err)
	namespace := e.namespace(t)
	e.seed(t, namespace)
	p, config := throughProxy(t, e.API)
	subjects := subjectsFor(t, config, namespace, fast())
	ready := startAll(t, subjects)
	for _, s := range subjects {
		s.AwaitContents(t, e.configMaps(t, namespace))
		s.AwaitRequests(t, "an open watch", isWatching)
	}
	require.NoError(t, e.API.Kill())
	e.change(t, namespace, "1")
	p.Redirect(address(t, replica))
	after := e.configMaps(t, namespace)
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		view := s.AwaitContents(t, after)
		assert.Same(t, ready[s], view.Token)
		all := requests.Main(s.Requests.All())
		assert.Len(t, requests.Sets(all), 1, "%v", all)
	})
	require.NoError(t, e.API.Start(t.Context()))
	require.NoError(t, replica.Kill())
}

// testDownAtStart starts stores while there is no server. No read ever says that
// nothing exists (C8, C13).
func testDownAtStart(t *testing.T, e, other *env) {
	namespace := e.namespace(t)
	e.seed(t, namespace)
	require.NoError(t, e.API.Kill())
	subjects := subjectsFor(t, e.Config(), namespace, fast())
	for _, s := range subjects {
		s.Start(t)
	}
	for _, s := range subjects {
		s.AwaitRequests(t, "failed attempts", hasFailed(3))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, fromView := s.View()
		_, fromGet := s.GetAny(ctx, types.NamespacedName{Namespace: namespace, Name: "untouched"})
		list, fromList := s.ListAny(ctx)
		cancel()
		assert.Nil(t, list)
		assert.Nil(t, s.StaleView())
		for from, err := range map[string]error{"View": fromView, "Get": fromGet, "List": fromList} {
			require.ErrorIs(t, err, safestore.ErrNotReady, from)
			assert.ErrorIs(t, err, syscall.ECONNREFUSED, from)
			assert.False(t, apierrors.IsNotFound(err), "%s: %v", from, err)
		}
		assert.Equal(t, uint64(1), s.Token().Generation(), "nothing was ready, nothing is revoked")
	}
	other.change(t, namespace, "1")
	require.NoError(t, e.API.Start(t.Context()))
	for _, s := range subjects {
		view := s.AwaitContents(t, e.configMaps(t, namespace))
		assert.Equal(t, uint64(1), view.Token.Generation())
		assert.Empty(t, s.Status().Watch.WatchListRefused)
	}
}
