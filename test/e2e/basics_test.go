package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

// withEach runs a test with every kind of client.
func withEach(t *testing.T, subjects []*subject.Subject, test func(*testing.T, *subject.Subject)) {
	t.Helper()
	for _, s := range subjects {
		t.Run(s.Name, func(t *testing.T) { test(t, s) })
	}
}

// startAll starts stores, waits until they are ready, and returns their tokens.
func startAll(t *testing.T, subjects []*subject.Subject) map[*subject.Subject]*token.Token {
	t.Helper()
	for _, s := range subjects {
		s.Start(t)
	}
	ready := map[*subject.Subject]*token.Token{}
	for _, s := range subjects {
		ready[s] = s.AwaitReady(t)
	}
	return ready
}

func TestTheStoreFollowsTheServer(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace, elsewhere := e.namespace(t), e.namespace(t)
	e.create(t, elsewhere, "other", "0")
	withEach(t, subject.All(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace}), func(t *testing.T, s *subject.Subject) {
		key := types.NamespacedName{Namespace: namespace, Name: "a"}
		s.Start(t)
		ready := s.AwaitReady(t)
		assert.Equal(t, uint64(1), ready.Generation())
		list, err := s.ListAny(t.Context())
		require.NoError(t, err)
		assert.Empty(t, list, "an empty namespace is ready and empty")
		_, err = s.GetAny(t.Context(), key)
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
		assert.NotErrorIs(t, err, safestore.ErrNotReady)

		created := e.create(t, namespace, "a", "1")
		first := s.AwaitContents(t, e.configMaps(t, namespace))
		assert.Equal(t, created.ResourceVersion, first.Version, "the version is that of the last event")

		e.update(t, namespace, "a", "2")
		s.AwaitContents(t, e.configMaps(t, namespace))
		obj, err := s.GetAny(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, "2", subject.StateOf(obj).Value)
		assert.Equal(t, "1", first.Contents()[key].Value, "a snapshot does not change")

		e.delete(t, namespace, "a")
		e.create(t, namespace, "a", "3")
		s.AwaitContents(t, e.configMaps(t, namespace))
		e.delete(t, namespace, "a")
		s.AwaitContents(t, subject.Contents{})
		_, err = s.GetAny(t.Context(), key)
		assert.True(t, apierrors.IsNotFound(err), "%v", err)

		assert.Same(t, ready, s.Token(), "ordinary life revokes nothing")
		all := requests.Main(s.Requests.All())
		assert.Equal(t, 1, requests.Count(all, requests.WatchList), "%v", all)
		assert.Equal(t, 1, requests.Count(all, requests.List), "an empty set is looked at twice: %v", all)
		assert.Len(t, all, 2, "and that is all that was asked: %v", all)
	})
}

// A revocation by the program ends reads before Revoke returns; the store lists
// again, and unchanged objects are not replaced by copies.
func TestRevokedByTheProgram(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.create(t, namespace, "a", "1")
	key := types.NamespacedName{Namespace: namespace, Name: "a"}
	withEach(t, subject.All(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace}), func(t *testing.T, s *subject.Subject) {
		var readies []uint64
		var revocations []*invalidation.Revocation
		s.OnReady(func(t *token.Token) { readies = append(readies, t.Generation()) })
		s.OnRevoke(func(r *invalidation.Revocation) { revocations = append(revocations, r) })
		s.Start(t)
		ready := s.AwaitReady(t)
		before, err := s.GetAny(t.Context(), key)
		require.NoError(t, err)

		release := s.Gate.Hold(func(requests.Request) bool { return true })
		cause := errors.New("not to be trusted")
		require.True(t, s.Revoke(ready, cause))
		assert.Equal(t, token.Revoked, ready.State())
		_, err = s.View()
		require.ErrorIs(t, err, safestore.ErrNotReady)
		assert.ErrorIs(t, err, invalidation.Requested)
		assert.ErrorIs(t, err, cause)
		stale := s.StaleView()
		require.NotNil(t, stale, "what was known may still be looked at, knowingly")
		assert.Same(t, ready, stale.Token)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = s.GetAny(ctx, key)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, safestore.ErrNotReady)
		release()

		again := s.AwaitReady(t)
		assert.Equal(t, ready.Generation()+1, again.Generation())
		after, err := s.GetAny(t.Context(), key)
		require.NoError(t, err)
		assert.Same(t, before, after, "same UID and version: same object (C36)")
		assert.False(t, s.Revoke(ready, nil), "a late caller harms no newer token")
		assert.Same(t, again, s.Token())

		s.Stop(t, nil)
		assert.Equal(t, []uint64{1, 2}, readies)
		require.Len(t, revocations, 2)
		assert.Equal(t, invalidation.Requested, revocations[0].Reason)
		assert.Equal(t, invalidation.Closed, revocations[1].Reason)
		assert.Len(t, requests.Sets(s.Requests.All()), 2)
	})
}

// The options of a source hold for lists, WatchLists and watches alike.
func TestSelectorsAreKept(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.fill(t, namespace, 10)
	even := func(o *metav1.ListOptions) { o.LabelSelector = "half=0" }
	o := subject.Options{Store: fast(), Namespace: namespace, Modify: []func(*metav1.ListOptions){even}}
	o.Store.Watch.WatchTimeout = time.Second
	subjects := subject.All(t, e.Config(), o)
	o.Paged = true
	subjects = append(subjects, subject.Typed(t, e.Config(), o))
	startAll(t, subjects)
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		view, err := s.View()
		require.NoError(t, err)
		assert.Equal(t, 5, view.Len)
		all := s.AwaitRequests(t, "a resumed watch", func(all []requests.Request) bool {
			n := requests.Count(all, requests.Watch)
			return n > 1 && isWatching(all)
		})
		for _, r := range all {
			assert.Equal(t, "half=0", r.Query.Get("labelSelector"), "%s", r)
		}
		assert.Empty(t, requests.Unprompted(all))
	})
}
