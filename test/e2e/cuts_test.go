package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

// However often connections break, nothing is listed again and nothing is lost:
// watches resume.
func TestCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.create(t, namespace, "a", "0")
	p, config := throughProxy(t, e.API)
	subjects := subjectsFor(t, config, namespace, fast())
	ready := startAll(t, subjects)
	const cuts = 25
	for i := range cuts {
		for _, s := range subjects {
			s.AwaitContents(t, e.configMaps(t, namespace))
			s.AwaitRequests(t, "an open watch", isWatching)
		}
		e.update(t, namespace, "a", fmt.Sprint(2*i+1)) // on its way, or just delivered
		assert.NotZero(t, p.Cut())
		e.update(t, namespace, "a", fmt.Sprint(2*i+2)) // missed by a watch that is broken
		if i%5 == 0 {
			e.create(t, namespace, fmt.Sprintf("created-%d", i), "0")
		}
	}
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		view := s.AwaitContents(t, e.configMaps(t, namespace))
		assert.Same(t, ready[s], view.Token)
		assert.Equal(t, token.Ready, view.Token.State())
		all := requests.Main(s.Requests.All())
		assert.Len(t, requests.Sets(all), 1, "%v", all)
		assert.GreaterOrEqual(t, requests.Count(all, requests.Watch), cuts)
		assert.Empty(t, s.Status().Watch.WatchListRefused)
	})
}

// A connection on which nothing moves any more is given up by HTTP/2 when its
// ping is not answered. That is a lost connection like any other. The times are
// for the whole program, so that this test does not run beside others.
func TestLostToAPing(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	e := share(t)
	namespace := e.namespace(t)
	e.create(t, namespace, "a", "0")
	p, config := throughProxy(t, e.API)
	subjects := subjectsFor(t, config, namespace, fast())
	ready := startAll(t, subjects)
	for _, s := range subjects {
		s.AwaitContents(t, e.configMaps(t, namespace))
		s.AwaitRequests(t, "an open watch", isWatching)
	}
	p.Stall()
	e.update(t, namespace, "a", "1")
	for _, s := range subjects {
		s.AwaitRequests(t, "the watch to be given up", func(all []requests.Request) bool { return !isWatching(all) })
	}
	p.Cut()
	p.Resume()
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		view := s.AwaitContents(t, e.configMaps(t, namespace))
		assert.Same(t, ready[s], view.Token, "%v", ready[s].Cause())
		assert.Len(t, requests.Sets(s.Requests.All()), 1, "%v", s.Requests.All())
	})
}

// A connection that breaks in the middle of the first set, or of a relist, leaves
// nothing of it behind, and is no reason to do without WatchList from then on.
func TestCutInTheMiddleOfASet(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.fillFast(t, namespace, manyPages, func(i int) *corev1.ConfigMap {
		return configMap(namespace, fmt.Sprintf("n%06d", i), strings.Repeat("0", 1000))
	})
	const half = manyPages * 1000 / 2
	p, config := throughProxy(t, e.API)
	config.DisableCompression = true // for the half to be half
	withEach(t, subjectsFor(t, config, namespace, fast()), func(t *testing.T, s *subject.Subject) {
		t.Cleanup(p.Resume)
		p.StallAfter(half)
		s.Start(t)
		eventually(t, "half of the set", p.Stalled)
		_, err := s.View()
		require.ErrorIs(t, err, safestore.ErrNotReady)
		assert.Nil(t, s.StaleView())
		p.Cut()
		p.Resume()
		s.AwaitReady(t)
		checkFirst(t, s, e.configMaps(t, namespace))
		s.AwaitRequests(t, "an open watch", isWatching)
		assert.Empty(t, s.Status().Watch.WatchListRefused)
		all := requests.Main(s.Requests.All())
		assert.Len(t, requests.Sets(all), 2, "%v", all)

		first := s.Token()
		p.StallAfter(half)
		require.True(t, s.Revoke(first, nil))
		eventually(t, "half of the set", p.Stalled)
		_, err = s.View()
		require.ErrorIs(t, err, safestore.ErrNotReady)
		p.Cut()
		p.Resume()
		view := s.AwaitContents(t, e.configMaps(t, namespace))
		assert.Equal(t, first.Generation()+1, view.Token.Generation())
		s.AwaitRequests(t, "an open watch", isWatching)
		assert.Empty(t, s.Status().Watch.WatchListRefused)
		s.Stop(t, nil)
	})
}
