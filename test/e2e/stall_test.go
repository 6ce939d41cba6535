package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

const (
	// finding is how long it takes to find out about a silent stream: to ask for
	// the version, to see what a second watch brings, and to wait whether the first
	// one brings it too.
	finding = 2 * time.Second
	// asking is how long it takes at most if requests are not answered.
	asking = 5 * time.Second
	// healing is how long it takes from a way to the server that is whole to the
	// next token: to find out that the stream is stuck, a backoff, a new stream, and
	// the proof of it.
	healing = 7 * time.Second
)

// silence are options with which a silent stream is soon looked after.
func silence(limit time.Duration) safestore.Options {
	o := fast()
	o.Watch.MaxSilence = limit
	return o
}

// A watch is stalled by something in between that keeps its connection alive and
// answers the pings on it. Other requests pass, and so do new watches, at once or
// after a while. If at once, nothing is listed again (C2, C4, C6).
func TestAStalledStream(t *testing.T) {
	t.Parallel()
	e := share(t)
	stuck, either := []invalidation.Reason{invalidation.Stuck}, []invalidation.Reason{invalidation.Stuck, invalidation.Stale}
	tests := map[string]func(*testing.T){}
	for name, test := range map[string]struct {
		o       safestore.Options
		newToo  time.Duration // for how long new watches are stalled as well
		limit   time.Duration // to be found
		reasons []invalidation.Reason
	}{
		"MaxSilence 2s":                         {silence(2 * time.Second), 0, 2*time.Second + finding, stuck},
		"MaxStaleness 2s":                       {within(2 * time.Second), 0, 2 * time.Second, either},
		"MaxStaleness 3s":                       {within(3 * time.Second), 0, 3 * time.Second, either},
		"MaxStaleness 5s":                       {within(5 * time.Second), 0, 5 * time.Second, either},
		"MaxStaleness 10s":                      {within(10 * time.Second), 0, 10 * time.Second, either},
		"MaxSilence 2s, new watches for 9s":     {silence(2 * time.Second), 9 * time.Second, 2*time.Second + asking + finding, stuck},
		"MaxStaleness 2s, new watches for 9s":   {within(2 * time.Second), 9 * time.Second, 2 * time.Second, either},
		"MaxStaleness 5s, new watches for 9s":   {within(5 * time.Second), 9 * time.Second, 5 * time.Second, either},
		"MaxStaleness 10s, new watches for 15s": {within(10 * time.Second), 15 * time.Second, 10 * time.Second, either},
	} {
		tests[name] = func(t *testing.T) {
			g, config := throughGateway(t, e.Config())
			namespace := e.namespace(t)
			c := e.count(t, namespace)
			test.o.Watch.InitialEventsTimeout = 3 * time.Second
			s := subject.Typed(t, config, subject.Options{Store: test.o, Namespace: namespace})
			diary := subject.KeepDiary(s)
			s.Start(t)
			ready := s.AwaitReady(t)
			r := watchReads(t, s, c, test.o.MaxStaleness)
			pass(t, time.Second)

			f := begin(ready)
			g.StallNew(test.newToo > 0)
			assert.NotZero(t, g.Stall())
			if test.newToo > 0 {
				f.over = f.begun.Add(test.newToo)
				time.AfterFunc(test.newToo, func() { g.StallNew(false) })
			}
			f.awaitRevoked(t, s, test.limit, test.reasons...)
			again := f.awaitReady(t, s, healing)
			pass(t, time.Second)

			assert.Same(t, again, s.Token(), "healed for good")
			r.stop()
			t.Log(r)
			t.Log(diary.Entries())
			assert.Empty(t, diary.OutOfOrder())
			if test.newToo == 0 {
				assertOneSet(t, s, test.o)
			}
		}
	}
	together(t, tests)
}

// A quiet collection loses nothing by a stalled watch, and what it has lost is
// found when there is something.
func TestAStalledStreamWithNothingToSay(t *testing.T) {
	t.Parallel()
	e := share(t)
	g, config := throughGateway(t, e.Config())
	namespace := e.namespace(t)
	e.create(t, namespace, "a", "0")
	s := subject.Typed(t, config, subject.Options{Store: silence(time.Second), Namespace: namespace}).Start(t)
	ready := s.AwaitReady(t)
	assert.NotZero(t, g.Stall())
	pass(t, 6*time.Second)
	assert.Equal(t, token.Ready, ready.State(), "%v", ready.Cause())

	f := begin(ready)
	e.update(t, namespace, "a", "1")
	f.awaitRevoked(t, s, time.Second+finding+2*time.Second, invalidation.Stuck)
	f.awaitReady(t, s, healing)
	assert.True(t, mustView(t, s).Contents().Equal(e.configMaps(t, namespace)))
}

// A connection is lost without a word: what is sent over it vanishes, in both
// directions, and nobody says so. New connections pass, if they are made (C2,
// C4, C6).
func TestABlackHole(t *testing.T) {
	t.Parallel()
	e := share(t)
	tests := map[string]func(*testing.T){}
	for name, test := range map[string]struct {
		o         safestore.Options
		reconnect bool          // new connections pass, and the program helps to make them
		lasts     time.Duration // if no connection passes
		limit     time.Duration
		reason    invalidation.Reason
	}{
		"MaxSilence 2s, a new connection passes":   {silence(2 * time.Second), true, 0, 2*time.Second + asking + finding, invalidation.Stuck},
		"MaxStaleness 3s, a new connection passes": {within(3 * time.Second), true, 0, 3 * time.Second, invalidation.Stale},
		"MaxSilence 2s, none passes for 12s":       {silence(2 * time.Second), false, 12 * time.Second, 2*time.Second + asking + finding, invalidation.Stuck},
		"MaxStaleness 3s, none passes for 12s":     {within(3 * time.Second), false, 12 * time.Second, 3 * time.Second, invalidation.Stale},
	} {
		tests[name] = func(t *testing.T) {
			// The store connects to the first proxy, which sends it by the second.
			first, config := throughProxy(t, e.API)
			second, err := proxy.Start(address(t, e.API))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, second.Close()) })
			first.Redirect(second.Address())
			namespace := e.namespace(t)
			c := e.count(t, namespace)
			config, reconnect := reconnecting(config)
			if test.reconnect {
				test.o.Watch.Reconnect = reconnect
			}
			s := subject.Typed(t, config, subject.Options{Store: test.o, Namespace: namespace}).Start(t)
			ready := s.AwaitReady(t)
			r := watchReads(t, s, c, test.o.MaxStaleness)
			pass(t, time.Second)

			f := begin(ready)
			if test.reconnect {
				first.Redirect(address(t, e.API))
			}
			second.Stall()
			if test.lasts > 0 {
				f.over = f.begun.Add(test.lasts)
				time.AfterFunc(test.lasts, second.Resume)
			}
			f.awaitRevoked(t, s, test.limit, test.reason)
			f.awaitReady(t, s, healing)
			pass(t, time.Second)
			r.stop()
			t.Log(r)
			assertOneSet(t, s, test.o)
		}
	}
	together(t, tests)
}

// assertOneSet asserts that the set was asked for once.
func assertOneSet(t *testing.T, s *subject.Subject, o safestore.Options) {
	t.Helper()
	sets := requests.Sets(s.Requests.All())
	if o.MaxStaleness != 0 && o.MaxStaleness < 6*time.Second {
		// There lists stand in for proofs. The set itself came by WatchList.
		sets = slices.DeleteFunc(sets, func(r requests.Request) bool { return r.Kind == requests.List })
	}
	assert.Len(t, sets, 1, "%v", s.Requests.All())
}

// Something in between takes the watch's time limit out of the request: the server
// keeps a watch for half an hour and more. The store ends it itself (C4).
func TestTimeLimitsThatDoNotArrive(t *testing.T) {
	t.Parallel()
	e := share(t)
	g, config := throughGateway(t, e.Config())
	g.Edit(func(query url.Values) { query.Del("timeoutSeconds") })
	busy, quiet := e.namespace(t), e.namespace(t)
	c := e.count(t, busy)
	e.create(t, quiet, "a", "0")
	unbounded := fast()
	unbounded.Watch.WatchTimeout = time.Second
	tests := map[string]func(*testing.T){
		"no bound": func(t *testing.T) {
			s := subject.Typed(t, config, subject.Options{Store: unbounded, Namespace: busy}).Start(t)
			ready := s.AwaitReady(t)
			r := watchReads(t, s, c, 0)
			begun := time.Now()
			s.AwaitRequests(t, "the watch to be opened again", func(all []requests.Request) bool {
				return requests.Count(all, requests.Watch) > 0 && isWatching(all)
			})
			t.Logf("asked for 1 to 2s, opened again after %v", round(time.Since(begun)))
			pass(t, time.Second)
			r.stop()
			t.Log(r)
			assert.Same(t, ready, s.Token())
			assert.Equal(t, token.Ready, ready.State(), "%v", ready.Cause())
			assert.Empty(t, r.failures())
		},
		"MaxStaleness 5s, and changes": func(t *testing.T) {
			s := subject.Typed(t, config, subject.Options{Store: within(5 * time.Second), Namespace: busy}).Start(t)
			s.AwaitReady(t)
			r := watchReads(t, s, c, 5*time.Second)
			pass(t, 15*time.Second)
			r.stop()
			t.Log(r)
			assert.Empty(t, r.failures(), "what comes proves that all came")
		},
	}
	for _, bound := range []time.Duration{5 * time.Second, 10 * time.Second} {
		tests[fmt.Sprintf("MaxStaleness %v, and a quiet collection", bound)] = func(t *testing.T) {
			// No bookmark comes in time. When that is known, everything is compared.
			s := subject.Typed(t, config, subject.Options{Store: within(bound), Namespace: quiet}).Start(t)
			s.AwaitReady(t)
			r := watchReads(t, s, nil, 0)
			pass(t, 20*time.Second)
			r.stop()
			t.Log(r, "; lists:", requests.Count(s.Requests.All(), requests.List))
			assert.Empty(t, r.failures())
		}
	}
	together(t, tests)
}

// Something in between takes all bookmarks out of watches. What can be proven
// without them is: that a watch from the store's version has nothing to say
// (C3, C4, C9).
func TestNoBookmarks(t *testing.T) {
	t.Parallel()
	e := share(t)
	g, config := throughGateway(t, e.Config())
	g.DropBookmarks()
	namespace, elsewhere := e.namespace(t), e.namespace(t)
	e.create(t, namespace, "a", "0")
	e.count(t, elsewhere) // the server's version moves on, this collection's objects do not
	tests := map[string]func(*testing.T){}
	for name, test := range map[string]struct {
		o    safestore.Options
		goes time.Duration
	}{
		"default":          {safestore.Options{}, 85 * time.Second},
		"MaxSilence 2s":    {silence(2 * time.Second), 20 * time.Second},
		"MaxStaleness 10s": {safestore.Options{MaxStaleness: 10 * time.Second}, 35 * time.Second},
		"MaxStaleness 30s": {safestore.Options{MaxStaleness: 30 * time.Second}, 50 * time.Second},
	} {
		tests[name] = func(t *testing.T) {
			test.o.Watch.InitialEventsTimeout = time.Second // the end marker is one
			s := subject.Typed(t, config, subject.Options{Store: test.o, Namespace: namespace}).Start(t)
			ready := s.AwaitReady(t)
			r := watchReads(t, s, nil, 0)
			pass(t, test.goes)
			r.stop()
			all := s.Requests.All()
			t.Logf("%v; %d probes, %d peeks, %d watches in %v", r, requests.Count(all, requests.Probe),
				requests.Count(all, requests.Peek), requests.Count(all, requests.Watch), test.goes)
			assert.Empty(t, r.failures())
			assert.Same(t, ready, s.Token())
			assert.Equal(t, token.Ready, ready.State(), "%v", ready.Cause())
			assert.NotZero(t, requests.Count(all, requests.Peek), "this is about proofs")
		}
	}
	together(t, tests)
}
