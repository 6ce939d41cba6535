package e2e

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// manyPages is more than two pages hold at the default size of 500.
const manyPages = 1200

func TestTheFirstSetComesByWatchListOrByPages(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.fill(t, namespace, manyPages)
	server := e.configMaps(t, namespace)
	require.Len(t, server, manyPages)

	o := subject.Options{Store: fast(), Namespace: namespace}
	for _, s := range subject.All(t, e.Config(), o) {
		t.Run(s.Name, func(t *testing.T) {
			s.Start(t)
			s.AwaitReady(t)
			checkFirst(t, s, server)
			assertStreamed(t, s)
		})
	}
	o.Paged = true
	for _, s := range subject.All(t, e.Config(), o) {
		t.Run(s.Name, func(t *testing.T) {
			s.Start(t)
			s.AwaitReady(t)
			checkFirst(t, s, server)
			assertPaged(t, s)
		})
	}
}

// checkFirst checks the first thing that a reader can see.
func checkFirst(t *testing.T, s *subject.Subject, server subject.Contents) {
	t.Helper()
	view, err := s.View()
	require.NoError(t, err)
	assert.Equal(t, len(server), view.Len)
	assert.True(t, view.Contents().Equal(server))
	assert.Equal(t, uint64(1), view.Token.Generation())
}

func assertStreamed(t *testing.T, s *subject.Subject) {
	t.Helper()
	all := requests.Main(s.Requests.All())
	require.Len(t, all, 1, "%v", all)
	assert.Equal(t, requests.WatchList, all[0].Kind)
	assert.Empty(t, all[0].Version(), "a consistent read")
	assert.Equal(t, "NotOlderThan", all[0].Query.Get("resourceVersionMatch"))
	assert.Empty(t, s.Status().Watch.WatchListRefused)
}

func assertPaged(t *testing.T, s *subject.Subject) {
	t.Helper()
	view, err := s.View()
	require.NoError(t, err)
	all := s.AwaitRequests(t, "the watch", func(all []requests.Request) bool { return requests.Count(all, requests.Watch) > 0 })
	all = requests.Main(all)
	require.Len(t, all, 4, "three pages and a watch: %v", all)
	for i, page := range all[:3] {
		assert.Equal(t, requests.List, page.Kind)
		assert.Equal(t, "500", page.Query.Get("limit"))
		assert.Empty(t, page.Version(), "a consistent read")
		assert.Equal(t, i > 0, page.Query.Has("continue"))
		assert.True(t, page.Complete)
	}
	assert.Equal(t, requests.Watch, all[3].Kind)
	assert.Equal(t, view.Version, all[3].Version(), "the watch goes on from where the list ended")
}

// The feature gate of client-go counts as well. It is one for the whole program,
// so that this test does not run beside others.
func TestTheFeatureGateSwitchesWatchListOff(t *testing.T) {
	e := share(t)
	namespace := e.namespace(t)
	e.fill(t, namespace, manyPages)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false)
	for _, s := range subject.All(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace}) {
		s.Start(t)
		s.AwaitReady(t)
		checkFirst(t, s, e.configMaps(t, namespace))
		assertPaged(t, s)
	}
}

// Nobody sees a part of the set: while a page or the end of the stream is
// missing, every read says that the store is not ready.
func TestAPartOfTheSetIsNeverShown(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.fill(t, namespace, manyPages)
	for _, s := range subject.All(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace, Paged: true}) {
		t.Run(s.Name, func(t *testing.T) {
			isThird := func(r requests.Request) bool {
				return r.Query.Has("continue") && requests.Count(s.Requests.All(), requests.List) == 3
			}
			release := s.Gate.Hold(isThird)
			s.Start(t)
			s.AwaitRequests(t, "the third page", func(all []requests.Request) bool { return len(all) == 3 })
			eventually(t, "two pages taken in", func() bool { return s.Status().Watch.Progress.Objects == 1000 })
			assert.EqualValues(t, manyPages, s.Status().Watch.Progress.Total, "the server says how many are left")
			_, err := s.View()
			require.ErrorIs(t, err, safestore.ErrNotReady)
			assert.Nil(t, s.StaleView())
			list := make(chan int, 1)
			go func() {
				all, _ := s.ListAny(context.WithoutCancel(t.Context()))
				list <- len(all)
			}()
			release()
			assert.Equal(t, manyPages, <-list)
			for _, r := range s.Requests.All() {
				assert.NotEqual(t, http.StatusGone, r.Status)
			}
		})
	}
}
