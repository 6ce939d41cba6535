package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

var errShutdown = errors.New("the program shuts down")

// blocked starts readers that wait for a store, and returns what waits for them
// and checks what they were told.
func blocked(t *testing.T, s *subject.Subject) (check func()) {
	t.Helper()
	const each = 5
	key := types.NamespacedName{Namespace: s.Namespace, Name: "none"}
	errs := make([]error, 3*each)
	var readers sync.WaitGroup
	ctx := context.WithoutCancel(t.Context())
	for i := range each {
		readers.Go(func() { _, errs[3*i] = s.GetAny(ctx, key) })
		readers.Go(func() { _, errs[3*i+1] = s.ListAny(ctx) })
		readers.Go(func() { _, errs[3*i+2] = s.WaitReady(ctx) })
	}
	return func() {
		readers.Wait()
		for _, err := range errs {
			assert.ErrorIs(t, err, safestore.ErrNotReady)
			assert.ErrorIs(t, err, invalidation.Closed)
			assert.ErrorIs(t, err, errShutdown)
		}
	}
}

// C44. A store ends at once whatever it is doing, and leaves nothing behind. The
// tests do not run beside others, since they count goroutines.
func TestTheContextEnds(t *testing.T) {
	e := share(t)
	namespace := e.namespace(t)
	e.fill(t, namespace, manyPages)
	isPage := func(n int) func(*subject.Subject) func(requests.Request) bool {
		return func(s *subject.Subject) func(requests.Request) bool {
			return func(r requests.Request) bool {
				return r.Kind == requests.List && requests.Count(s.Requests.All(), requests.List) == n
			}
		}
	}
	isKind := func(kind requests.Kind) func(*subject.Subject) func(requests.Request) bool {
		return func(*subject.Subject) func(requests.Request) bool {
			return func(r requests.Request) bool { return r.Kind == kind }
		}
	}
	for name, test := range map[string]struct {
		paged bool
		// hold says which request is to hang.
		hold func(*subject.Subject) func(requests.Request) bool
		// ready says that the store is ready by then.
		ready bool
	}{
		"while it waits for a WatchList":    {hold: isKind(requests.WatchList)},
		"while it waits for the first page": {paged: true, hold: isPage(1)},
		"while it waits for the third page": {paged: true, hold: isPage(3)},
		"while it opens a watch":            {paged: true, hold: isKind(requests.Watch)},
	} {
		t.Run(name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			s := subject.Typed(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace, Paged: test.paged})
			s.Gate.Hold(test.hold(s))
			s.Start(t)
			s.AwaitRequests(t, "the request that hangs", func(all []requests.Request) bool {
				last := len(all) - 1
				return last >= 0 && test.hold(s)(all[last])
			})
			check := blocked(t, s)
			endsWell(t, s, check, leaks)
		})
	}

	t.Run("while a watch is open", func(t *testing.T) {
		leaks := goleak.IgnoreCurrent()
		s := subject.Typed(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace}).Start(t)
		ready := s.AwaitReady(t)
		s.AwaitRequests(t, "an open watch", isWatching)
		view, err := s.View()
		require.NoError(t, err)
		endsWell(t, s, func() {}, leaks)
		assert.ErrorIs(t, ready.Cause(), invalidation.Closed)
		assert.ErrorIs(t, ready.Cause(), errShutdown)
		assert.Len(t, view.Contents(), manyPages, "a snapshot outlives its store")
	})

	for name, breaks := range map[string]func(*proxy.Proxy){
		"while it sits out a backoff":       (*proxy.Proxy).Refuse,
		"while the network loses each byte": (*proxy.Proxy).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			p, config := throughProxy(t, e.API)
			o := fast()
			o.Watch.MinBackoff, o.Watch.MaxBackoff = time.Hour, time.Hour
			s := subject.Typed(t, config, subject.Options{Store: o, Namespace: namespace})
			breaks(p)
			s.Start(t)
			s.AwaitRequests(t, "a request", func(all []requests.Request) bool { return len(all) > 0 })
			check := blocked(t, s)
			endsWell(t, s, func() { check(); assert.NoError(t, p.Close()) }, leaks)
		})
	}
}

// endsWell ends a store and checks what is left of it.
func endsWell(t *testing.T, s *subject.Subject, check func(), leaks goleak.Option) {
	t.Helper()
	begun := time.Now()
	s.Stop(t, errShutdown)
	assert.Less(t, time.Since(begun), time.Second)
	check()
	_, err := s.View()
	assert.ErrorIs(t, err, errShutdown)
	for _, r := range s.Requests.All() {
		assert.True(t, r.Over, "left open: %s", r)
		assert.NotEqual(t, http.StatusGone, r.Status)
	}
	s.CloseConnections()
	assert.NoError(t, goleak.Find(leaks))
}

// C44 at moments that nobody chose.
func TestTheContextEndsAtAnyMoment(t *testing.T) {
	e := share(t)
	namespace := e.namespace(t)
	e.fill(t, namespace, manyPages)
	leaks := goleak.IgnoreCurrent()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 60 {
		s := subject.Typed(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace, Paged: i%2 == 0}).Start(t)
		results := make(chan error, 2)
		ctx := context.WithoutCancel(t.Context())
		go func() {
			list, err := s.ListAny(ctx)
			if err == nil && len(list) != manyPages {
				err = errors.New("a part of the set")
			}
			results <- err
		}()
		go func() {
			_, err := s.WaitReady(ctx)
			results <- err
		}()
		select {
		case <-time.After(time.Duration(random.Int64N(int64(80 * time.Millisecond)))):
		case <-t.Context().Done():
		}
		s.Stop(t, errShutdown)
		for range 2 {
			if err := <-results; err != nil {
				assert.ErrorIs(t, err, errShutdown)
			}
		}
		s.CloseConnections()
	}
	assert.NoError(t, goleak.Find(leaks))
}
