package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// etcd is put back to an older snapshot. What was created since is gone, what was
// deleted is there again, what was changed is what it was, and versions are given
// out a second time: no watch would ever tell (C28).
func TestRewound(t *testing.T) {
	t.Parallel()
	e := own(t)
	namespace := e.namespace(t)
	e.seed(t, namespace)
	subjects := map[*subject.Subject]time.Duration{}
	for _, bound := range []time.Duration{0, 3 * time.Second, 30 * time.Second} {
		s := subject.Typed(t, e.Config(), subject.Options{Store: within(bound), Namespace: namespace})
		s.Name = fmt.Sprintf("MaxStaleness %v", bound)
		subjects[s] = bound
	}
	diaries := map[*subject.Subject]*subject.Diary{}
	for s := range subjects {
		diaries[s] = subject.KeepDiary(s)
		s.Start(t)
		s.AwaitReady(t)
	}
	snapshot, err := e.Etcd.Snapshot()
	require.NoError(t, err)
	restored := e.configMaps(t, namespace)

	e.change(t, namespace, "1")
	created := e.create(t, namespace, "created", "1")
	e.skipVersions(t, 2000) // more than a starting API server writes
	last := e.update(t, namespace, "updated", "2")
	before := e.configMaps(t, namespace)
	faults, waits := map[*subject.Subject]*fault{}, map[*subject.Subject]<-chan error{}
	for s := range subjects {
		s.AwaitContents(t, before)
		faults[s] = begin(s.Token())
		// Written, answered, and lost with the backup.
		lost := configMap(namespace, "updated", "lost")
		lost.ResourceVersion, lost.UID = last.ResourceVersion+"0", last.UID
		ended := make(chan error, 1)
		waits[s] = ended
		go func() { ended <- waiting(s).WaitFor(t.Context(), lost) }()
	}

	begun := time.Now()
	require.NoError(t, e.API.Stop())
	require.NoError(t, e.Etcd.Restore(t.Context(), snapshot))
	require.NoError(t, e.API.Start(t.Context()))
	up := time.Now()
	t.Logf("the server was down for %v", round(up.Sub(begun)))

	for s, bound := range subjects {
		r := s.AwaitRevoked(t, faults[s].token)
		reasons := []invalidation.Reason{invalidation.Rewound}
		if bound != 0 && bound < up.Sub(begun) {
			reasons = append(reasons, invalidation.Stale) // while it was down
		}
		assert.Contains(t, reasons, r.Reason, s.Name)
		view := s.AwaitContents(t, restored)
		assert.Greater(t, view.Token.Generation(), r.Generation)
		t.Logf("%s: revoked for %s %v after the server went down; right %v after it was back, generation %d",
			s.Name, r.Reason, round(r.Since.Sub(begun)), round(max(0, time.Since(up))), view.Token.Generation())
		_, err := s.GetAny(t.Context(), types.NamespacedName{Namespace: namespace, Name: created.Name})
		assert.True(t, apierrors.IsNotFound(err), "%s: %v", s.Name, err)
		_, err = s.GetAny(t.Context(), types.NamespacedName{Namespace: namespace, Name: "deleted"})
		assert.NoError(t, err, s.Name)

		err = <-waits[s]
		assert.ErrorIs(t, err, invalidation.Rewound, "%s: the version that is waited for is void", s.Name)
		assert.ErrorIs(t, err, safestore.ErrNotReady, s.Name)
	}
	// They follow the server again, in its second history.
	again := e.update(t, namespace, "updated", "again")
	for s := range subjects {
		require.NoError(t, waiting(s).WaitFor(t.Context(), again))
		obj, err := s.GetAny(t.Context(), subjectKey(again))
		require.NoError(t, err)
		assert.Equal(t, subject.StateOf(again), subject.StateOf(obj))
		assert.Empty(t, diaries[s].OutOfOrder())
		t.Log(s.Name, diaries[s].Entries())
	}
}

// skipVersions makes so many changes to keys that no API server looks at.
func (e *env) skipVersions(t *testing.T, n int) {
	t.Helper()
	client, err := e.Etcd.Client()
	require.NoError(t, err)
	defer client.Close()
	for i := range n {
		_, err := client.Put(t.Context(), "/skipped", fmt.Sprint(i))
		require.NoError(t, err)
	}
}

// One of two API servers is cut off from etcd. It goes on answering from what it
// knew. A store that is sent there never takes the older state for the current
// one: with a bound it says so, and it heals when it is sent back (C30).
func TestALaggingReplica(t *testing.T) {
	t.Parallel()
	e := share(t)
	etcd, err := proxy.Start(e.Etcd.Endpoint()[len("http://"):])
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, etcd.Close()) })
	// ConfigMaps only: the rest of that server goes on working.
	lagging, err := e.StartReplica(t.Context(), "--etcd-servers-overrides=/configmaps#http://"+etcd.Address())
	require.NoError(t, err)
	t.Cleanup(etcd.Resume) // or the server does not stop

	const bound = 3 * time.Second
	namespace := e.namespace(t)
	c := e.count(t, namespace)
	switched, config := throughProxy(t, e.API) // between the two servers
	split, throughSplit := throughGateway(t, e.Config())
	bySwitch := subject.Typed(t, config, subject.Options{Store: within(bound), Namespace: namespace}).Start(t)
	bySplit := subject.Typed(t, throughSplit, subject.Options{Store: within(bound), Namespace: namespace}).Start(t)
	late := subject.Typed(t, lagging.Config(), subject.Options{Store: within(bound), Namespace: namespace})
	checks := map[*subject.Subject]*reads{}
	for _, s := range []*subject.Subject{bySwitch, bySplit} {
		s.AwaitReady(t)
		checks[s] = watchReads(t, s, c, bound)
	}
	pass(t, time.Second)

	etcd.Stall()
	pass(t, 2*time.Second) // it lags by twenty numbers now
	// What is already open ends, so that the next watch is at the other server.
	faults := map[*subject.Subject]*fault{bySwitch: begin(bySwitch.Token()), bySplit: begin(bySplit.Token())}
	switched.Redirect(address(t, lagging))
	switched.Cut()
	// Watches at the server that lags, lists at the one that does not.
	require.NoError(t, split.Route(func(query url.Values) int {
		if query.Get("watch") != "" {
			return 1
		}
		return 0
	}, e.Config(), lagging.Config()))
	split.End()
	late.Start(t)

	for _, s := range []*subject.Subject{bySwitch, bySplit} {
		faults[s].awaitRevoked(t, s, bound, invalidation.Stale, invalidation.Stuck)
	}
	pass(t, 4*time.Second)
	for _, s := range []*subject.Subject{bySwitch, late} { // the third one may have been listed again, where nothing lags
		_, err := s.View()
		assert.ErrorIs(t, err, safestore.ErrNotReady)
		t.Log(err)
	}
	assert.Nil(t, late.StaleView(), "nothing that is old was ever taken in")

	// One is sent back, for the other ones the server catches up.
	switched.Redirect(address(t, e.API))
	switched.Cut()
	faults[bySwitch].over = time.Now()
	faults[bySwitch].awaitReady(t, bySwitch, healing)
	etcd.Resume()
	faults[bySplit].over = time.Now()
	faults[bySplit].awaitReady(t, bySplit, 15*time.Second)
	late.AwaitReady(t)
	t.Logf("the store that was started meanwhile is ready %v after", round(time.Since(faults[bySplit].over)))
	watchReads(t, late, c, bound)
	pass(t, 2*time.Second)
	for _, r := range checks {
		r.stop()
		t.Log(r)
	}
}
