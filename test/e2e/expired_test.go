package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

// While a store is cut off, things change, and the server forgets the version
// that the store is at: by a restart of the API server, whose watch cache begins
// anew, and by compaction in etcd (C31, C32, C36).
func TestExpired(t *testing.T) {
	t.Parallel()
	e := own(t)
	uncached, err := e.StartReplica(t.Context(), "--watch-cache=false")
	require.NoError(t, err)

	t.Run("by a restart of the API server", func(t *testing.T) {
		p, config := throughProxy(t, e.API)
		testExpired(t, e, p, subjectsFor(t, config, e.namespace(t), fast()), func() {
			restart(t, e.API)
		})
	})
	t.Run("by compaction", func(t *testing.T) {
		p, config := throughProxy(t, uncached)
		testExpired(t, e, p, subjectsFor(t, config, e.namespace(t), fast()), func() {
			_, err := e.Etcd.Compact(t.Context())
			require.NoError(t, err)
		})
	})
	t.Run("a continue token, by compaction", func(t *testing.T) {
		testContinueExpired(t, e, subject.Typed(t, uncached.Config(),
			subject.Options{Store: fast(), Namespace: e.namespace(t), Paged: true}))
	})
}

// subjectsFor returns stores of each kind of client, and one that lists by page.
func subjectsFor(t *testing.T, config *rest.Config, namespace string, store safestore.Options) []*subject.Subject {
	t.Helper()
	o := subject.Options{Store: store, Namespace: namespace}
	subjects := subject.All(t, config, o)
	o.Paged = true
	return append(subjects, subject.Typed(t, config, o))
}

func testExpired(t *testing.T, e *env, p *proxy.Proxy, subjects []*subject.Subject, forget func()) {
	namespace := subjects[0].Namespace
	e.seed(t, namespace)
	diaries := map[*subject.Subject]*subject.Diary{}
	for _, s := range subjects {
		diaries[s] = subject.KeepDiary(s)
	}
	ready := startAll(t, subjects)
	asked := map[*subject.Subject]int{}
	before := e.configMaps(t, namespace)
	for _, s := range subjects {
		s.AwaitContents(t, before)
		s.AwaitRequests(t, "an open watch", isWatching)
	}

	p.Refuse()
	for _, s := range subjects {
		asked[s] = s.Requests.Len()
		assert.Equal(t, token.Ready, ready[s].State(), "a lost connection alone revokes nothing")
	}
	e.change(t, namespace, "1")
	forget()
	after := e.configMaps(t, namespace)
	p.Accept()

	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		revocation := s.AwaitRevoked(t, ready[s])
		assert.Equal(t, invalidation.Relist, revocation.Reason)
		assert.True(t, apierrors.IsResourceExpired(revocation) || apierrors.IsGone(revocation), "%v", revocation)
		view := s.AwaitContents(t, after)
		assert.Equal(t, ready[s].Generation()+1, view.Token.Generation())
		assert.NotContains(t, view.Contents().Names(), "deleted")

		all := s.Requests.All()
		version := ""
		for i, r := range all[asked[s]:] {
			if r.Expired {
				version = r.Version()
				for _, later := range requests.Main(all[asked[s]+i+1:]) {
					assert.NotEqual(t, version, later.Version(), "the version is forgotten after the first 410")
				}
			}
		}
		assert.NotEmpty(t, version, "no 410 in %v", all)
		audits := int(s.Status().Watch.Counts.Audits) // by which a proof goes on after its own 410
		assert.LessOrEqual(t, len(requests.Unprompted(all)), audits)
		assert.LessOrEqual(t, len(requests.Sets(all)), 2+audits, "%v", all)
		s.Stop(t, nil)
		assert.Equal(t, []string{"ready 1", "revoked 1 Relist", "ready 2", "revoked 2 Closed"}, diaries[s].Entries())
	})
}

// isWatching reports whether the last request is an open watch.
func isWatching(all []requests.Request) bool {
	all = requests.Main(all)
	if len(all) == 0 {
		return false
	}
	last := all[len(all)-1]
	return (last.Kind == requests.Watch || last.Kind == requests.WatchList && last.Complete) && last.Status == 200 && !last.Over
}

// testContinueExpired lets etcd forget the version of a list between two of its
// pages, twice. The list begins again, and pages of two versions are never put
// together (C31).
func testContinueExpired(t *testing.T, e *env, s *subject.Subject) {
	namespace := s.Namespace
	e.fill(t, namespace, manyPages)
	e.seed(t, namespace)
	d := subject.KeepDiary(s)
	isSecond := func(r requests.Request) bool { return r.Query.Has("continue") }
	release := s.Gate.Hold(isSecond)
	s.Start(t)
	for i := range 2 {
		pages := 2 * (i + 1)
		s.AwaitRequests(t, "a second page", func(all []requests.Request) bool { return len(all) == pages })
		e.change(t, namespace, string(rune('1'+i)))
		if i == 0 {
			e.create(t, namespace, "deleted", "again")
		}
		_, err := e.Etcd.Compact(t.Context())
		require.NoError(t, err)
		_, err = s.View()
		require.ErrorIs(t, err, safestore.ErrNotReady)
		next := s.Gate.Hold(isSecond)
		if i == 1 {
			next()
		}
		release()
		release = next
	}
	ready := s.AwaitReady(t)
	assert.Equal(t, uint64(1), ready.Generation())
	s.AwaitContents(t, e.configMaps(t, namespace))
	all := requests.Main(s.Requests.All())
	expired := 0
	for _, r := range all {
		if r.Expired {
			expired++
			assert.True(t, r.Query.Has("continue"), "%s", r)
		}
	}
	assert.Equal(t, 2, expired, "%v", all)
	assert.Len(t, requests.Sets(all), 3, "%v", all)
	s.Stop(t, nil)
	assert.Equal(t, []string{"ready 1", "revoked 1 Closed"}, d.Entries(), "ready once, with one swap")
}
