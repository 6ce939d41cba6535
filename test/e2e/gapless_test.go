package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

// With the option, a store that has to be listed again because its version is gone
// goes on answering, within its bound: the old token ends as the new one begins,
// and whoever listens hears of both. Beside it, a store without the option.
func TestAGaplessRelist(t *testing.T) {
	t.Parallel()
	e := share(t)
	server, err := e.StartReplica(t.Context())
	require.NoError(t, err)
	namespace := e.namespace(t)
	e.fill(t, namespace, manyPages)
	c := e.count(t, namespace)
	const bound = 20 * time.Second // longer than a server takes to start
	o := within(bound)
	byDefault := subject.Typed(t, server.Config(), subject.Options{Store: o, Namespace: namespace})
	o.GaplessRelist = true
	streamed := subject.Typed(t, server.Config(), subject.Options{Store: o, Namespace: namespace})
	paged := subject.Typed(t, server.Config(), subject.Options{Store: o, Namespace: namespace, Paged: true})
	all := map[string]*subject.Subject{"default": byDefault, "gapless": streamed, "gapless, paged": paged}
	diaries, checks, first, ends := map[string]*subject.Diary{}, map[string]*reads{}, map[string]*token.Token{}, map[string]chan error{}
	for name, s := range all {
		diaries[name] = subject.KeepDiary(s)
		s.Start(t)
		first[name] = s.AwaitReady(t)
		checks[name] = watchReads(t, s, c, bound)
		ends[name] = make(chan error, 1)
		context.AfterFunc(first[name].Context(), func() {
			_, err := s.View() // what work that is cancelled could read at that moment
			ends[name] <- err
		})
		s.AwaitRequests(t, "an open watch", isWatching)
	}

	require.NoError(t, server.Kill())
	pass(t, time.Second) // foreign writes: by the other server
	begun := time.Now()
	require.NoError(t, server.Start(t.Context()))
	t.Logf("the server was back after %v", round(time.Since(begun)))
	for name, s := range all {
		r := s.AwaitRevoked(t, first[name])
		assert.Equal(t, invalidation.Relist, r.Reason, "%s: %v", name, r)
		s.AwaitReady(t)
	}
	pass(t, time.Second)
	for name, s := range all {
		checks[name].stop()
		t.Logf("%s: %v; %v", name, checks[name], diaries[name].Entries())
		assert.Equal(t, []string{"ready 1", "revoked 1 Relist", "ready 2"}, diaries[name].Entries(), name)
		assert.Empty(t, diaries[name].OutOfOrder())
		assert.Empty(t, requests.Unprompted(requests.Main(s.Requests.All())), name)
		failures, atTheEnd := checks[name].failures(), <-ends[name]
		if name == "default" {
			assert.Len(t, failures, 1)
			assert.True(t, atTheEnd == nil || errors.Is(atTheEnd, safestore.ErrNotReady), "%v", atTheEnd)
			continue
		}
		assert.Empty(t, failures, "%s: no read fails", name)
		assert.NoError(t, atTheEnd, "%s: the next set is there when the old token ends", name)
	}
}
