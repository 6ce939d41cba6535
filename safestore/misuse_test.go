package safestore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// blockingReads are the reads that wait, as one.
var blockingReads = map[string]func(*store, context.Context) error{
	"WaitReady": func(s *store, ctx context.Context) error { _, err := s.WaitReady(ctx); return err },
	"Get":       func(s *store, ctx context.Context) error { _, err := s.Get(ctx, key("A", "a")); return err },
	"List":      func(s *store, ctx context.Context) error { _, err := s.List(ctx); return err },
}

func TestReadsBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newScripted())
		began := time.Now()
		_, err := s.Snapshot()
		assert.ErrorIs(t, err, ErrNotReady)
		assert.ErrorIs(t, err, ErrNotStarted)
		stale, age := s.Stale()
		assert.Nil(t, stale)
		assert.Zero(t, age)
		assert.Equal(t, token.Pending, s.Token().State())
		assert.Equal(t, token.Pending, s.Status().State)
		assert.Equal(t, began, time.Now(), "none of these waits")

		for name, read := range blockingReads {
			began := time.Now()
			err := read(s, t.Context())
			assert.Equal(t, startGrace, time.Since(began), name)
			assert.ErrorIs(t, err, ErrNotReady, name)
			assert.ErrorIs(t, err, ErrNotStarted, name)
			assert.NotErrorIs(t, err, context.DeadlineExceeded, name)

			ctx, cancel := context.WithTimeout(t.Context(), startGrace-time.Nanosecond)
			began = time.Now()
			err = read(s, ctx)
			cancel()
			assert.Equal(t, startGrace-time.Nanosecond, time.Since(began), name)
			assert.ErrorIs(t, err, context.DeadlineExceeded, name)
			assert.ErrorIs(t, err, ErrNotStarted, name)
		}
	})
}

// Readers that came a moment before Run go on to wait for readiness, for as long
// as it takes.
func TestRunWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted()
		source.answer(nil, errors.New("not yet"))
		s := newStore(t, source)
		errs := make(chan error, len(blockingReads))
		for _, read := range blockingReads {
			go func() { errs <- read(s, t.Context()) }()
		}
		time.Sleep(startGrace - time.Nanosecond)
		stop := start(t, s)
		defer stop(nil)
		time.Sleep(10 * startGrace) // the grace is over, and nobody gives up for that
		synctest.Wait()
		assert.Empty(t, errs)
		source.answer(mapList("1", mapOf("A", "a", "1")), nil)
		for range cap(errs) {
			assert.NoError(t, <-errs)
		}
	})
}

func TestReadsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOf(mapList("1", mapOf("A", "a", "1")))
		s := newStore(t, source)
		stop := start(t, s)
		tok := readyToken(t, s)
		cause := errors.New("the end")
		stop(cause)

		began := time.Now()
		_, err := s.Snapshot()
		errs := map[string]error{"Snapshot": err}
		for name, read := range blockingReads {
			errs[name] = read(s, t.Context())
		}
		assert.Equal(t, began, time.Now())
		for name, err := range errs {
			assert.ErrorIs(t, err, ErrNotReady, name)
			assert.ErrorIs(t, err, invalidation.Closed, name)
			assert.ErrorIs(t, err, cause, name)
			assert.NotErrorIs(t, err, ErrNotStarted, name)
			var e *NotReadyError
			if assert.ErrorAs(t, err, &e, name) {
				assert.Equal(t, tok.Generation(), e.Generation, name)
			}
		}
		assert.Same(t, tok, s.Token(), "no token follows")
		assert.ErrorIs(t, tok.Cause(), invalidation.Closed)
		stale, _ := s.Stale()
		assert.Equal(t, 1, stale.Len(), "who wants old data knowingly still gets it")
	})
}

// A context that is over before Run begins is an end like any other.
func TestRunUnderAContextThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newScripted())
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		cancel()
		assert.NoError(t, s.Run(ctx))
		_, err := s.Snapshot()
		assert.ErrorIs(t, err, invalidation.Closed)
		assert.ErrorIs(t, err, context.Canceled)
	})
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newScripted())
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer cancel()
		const calls = 10
		errs := make(chan error, calls)
		for range calls {
			go func() { errs <- s.Run(ctx) }()
		}
		for range calls - 1 {
			assert.ErrorIs(t, <-errs, ErrRunTwice)
		}
		tok := readyToken(t, s)
		assert.Equal(t, token.Ready, tok.State(), "the first goes on undisturbed")
		cancel()
		assert.NoError(t, <-errs)

		err := s.Run(t.Context())
		assert.ErrorIs(t, err, ErrRunTwice, "also after the end")
		assert.ErrorContains(t, err, "v1.ConfigMap")
		assert.Same(t, tok, s.Token())
		assert.Equal(t, token.Revoked, tok.State())
	})
}

func TestNoSource(t *testing.T) {
	var nobody *cache.ListWatch
	for name, source := range map[string]watcher.Source{"nil": nil, "a nil pointer": nobody} {
		s, err := New[*Map](source, Options{})
		assert.Nil(t, s, name)
		assert.EqualError(t, err, "safestore: source is nil", name)
	}
}

func TestBadOptions(t *testing.T) {
	for want, opts := range map[string]Options{
		"Watch.WatchTimeout":         {Watch: watcher.Options{WatchTimeout: -1}},
		"Watch.WatchTimeout is unde": {Watch: watcher.Options{WatchTimeout: time.Second - 1}},
		"Watch.RequestTimeout":       {Watch: watcher.Options{RequestTimeout: -1}},
		"Watch.InitialEventsTimeout": {Watch: watcher.Options{InitialEventsTimeout: -1}},
		"Watch.MinBackoff is":        {Watch: watcher.Options{MinBackoff: -1}},
		"Watch.MaxBackoff":           {Watch: watcher.Options{MaxBackoff: -1}},
		"Watch.MinBackoff 2s is":     {Watch: watcher.Options{MinBackoff: 2 * time.Second, MaxBackoff: time.Second}},
		"Watch.MinBackoff 1m":        {Watch: watcher.Options{MinBackoff: time.Minute}},
	} {
		s, err := New[*Map](newScripted(), opts)
		assert.Nil(t, s)
		assert.ErrorContains(t, err, "safestore: "+want)
	}
	s, err := New[*Map](newScripted(), Options{Name: "mine"})
	require.NoError(t, err)
	assert.Equal(t, "mine", s.Status().Name)
	_, err = s.Snapshot()
	assert.ErrorContains(t, err, "mine")
}

// A source of another type is found out at its first answer: the error names
// both types, and the store is never ready, however often it tries.
func TestWrongType(t *testing.T) {
	pods := &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "A", Name: "a", ResourceVersion: "1"}}},
	}
	check := func(t *testing.T, s *store, what string) {
		_, err := s.Snapshot()
		assert.ErrorIs(t, err, invalidation.BadData)
		assert.ErrorContains(t, err, what+": the store holds v1.ConfigMap")
	}
	t.Run("list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := sourceOf(pods)
			s := newStore(t, source)
			s.OnReady(func(*token.Token) { t.Error("ready") })
			stop := start(t, s)
			defer stop(nil)
			time.Sleep(time.Hour)
			synctest.Wait()
			check(t, s, "*v1.PodList")
			assert.Greater(t, source.listed(), 60, "it goes on trying")
			assert.Less(t, source.listed(), 1000, "with backoff")
		})
	})
	t.Run("event", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := sourceOf(mapList("1"))
			s := newStore(t, source)
			stop := start(t, s)
			defer stop(nil)
			tok := readyToken(t, s)
			source.events <- watch.Event{Type: watch.Added, Object: pods.Items[0].DeepCopy()}
			synctest.Wait()
			check(t, s, "*v1.Pod A/a")
			assert.ErrorIs(t, tok.Cause(), invalidation.BadData)
			source.answer(mapList("2"), nil)
			assert.Equal(t, tok.Generation()+1, readyToken(t, s).Generation(), "and it recovers")
		})
	})
}

func TestRevokeNamesItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted()
		list := source.list
		source.list = func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			time.Sleep(time.Second) // so that the store is not ready again before it is looked at
			return list(ctx, opts)
		}
		s := newStore(t, source)
		other := newStore(t, newScripted())
		first := s.Token()
		assert.False(t, s.Revoke(nil, errTest))
		assert.False(t, s.Revoke(other.Token(), errTest), "another store's token")
		assert.Equal(t, token.Pending, other.Token().State())
		assert.Same(t, first, s.Token())

		// Before Run: the token ends, the next one is waited for, and it becomes
		// ready like any other.
		assert.True(t, s.Revoke(first, errTest))
		assert.False(t, s.Revoke(first, errTest), "a second time")
		assert.ErrorIs(t, first.Cause(), errTest)
		_, err := s.Snapshot()
		assert.ErrorIs(t, err, ErrNotStarted)
		assert.ErrorIs(t, err, invalidation.Requested)
		stop := start(t, s)
		defer stop(nil)
		second := readyToken(t, s)
		assert.EqualValues(t, 2, second.Generation())

		// A late caller means a token that is over.
		assert.False(t, s.Revoke(first, errTest))
		assert.Equal(t, token.Ready, second.State())

		assert.True(t, s.Revoke(second, nil))
		assert.ErrorIs(t, second.Cause(), invalidation.Requested)
		_, err = s.Snapshot()
		assert.ErrorIs(t, err, invalidation.Requested)
		third := readyToken(t, s)
		assert.EqualValues(t, 3, third.Generation())

		stop(nil)
		assert.False(t, s.Revoke(third, errTest), "closed")
		assert.False(t, s.Revoke(s.Token(), errTest), "closed")
		assert.ErrorIs(t, third.Cause(), invalidation.Closed)
	})
}

// One revocation costs one list.
func TestRevokeListsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted()
		s := newStore(t, source)
		stop := start(t, s)
		defer stop(nil)
		for i := range 3 {
			tok := readyToken(t, s)
			synctest.Wait()
			assert.Equal(t, i+1, source.listed())
			assert.True(t, s.Revoke(tok, nil))
		}
	})
}

func TestNilHooks(t *testing.T) {
	s := newStore(t, newScripted())
	assert.Panics(t, func() { s.OnReady(nil) })
	assert.Panics(t, func() { s.OnRevoke(nil) })
}

// A policy that drops the data and keeps the token would leave readers with a
// ready token and nothing to read: one follows from the other.
func TestPolicyCannotDropWhatIsServed(t *testing.T) {
	policy := invalidation.Policy(func(o invalidation.Observation) invalidation.Decision {
		d := invalidation.Default(o)
		d.Drop = d.Drop || o.Seen == invalidation.StreamBroken
		return d
	})
	d := policy.Decide(invalidation.Observation{Seen: invalidation.StreamBroken})
	require.Equal(t, d.Drop, d.Revoke != "", "what is dropped is not vouched for, and what is vouched for is not dropped: %+v", d)

	synctest.Test(t, func(t *testing.T) {
		source := sourceOf(mapList("1", mapOf("A", "a", "1")))
		s, err := New[*Map](source, Options{Watch: watcher.Options{Policy: policy}})
		require.NoError(t, err)
		stop := start(t, s)
		defer stop(nil)
		readyToken(t, s)
		source.events <- watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: 500}}
		synctest.Wait()
		for name, read := range blockingReads {
			err := read(s, over())
			assert.True(t, err == nil || errors.Is(err, ErrNotReady), "%s: %v", name, err)
		}
		stale, _ := s.Stale()
		assert.Equal(t, d.Drop, stale == nil)
	})
}

// A program may survive the panic of its policy. Nothing feeds the store any more then,
// and its reads must say so.
func TestPolicyPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOf(mapList("1", mapOf("A", "a", "1")))
		s, err := New[*Map](source, Options{Watch: watcher.Options{
			Policy: func(o invalidation.Observation) invalidation.Decision {
				if o.Seen == invalidation.StreamBroken {
					panic("policy")
				}
				return invalidation.Default(o)
			},
		}})
		require.NoError(t, err)
		survived := make(chan any, 1)
		go func() {
			defer func() { survived <- recover() }()
			_ = s.Run(t.Context())
		}()
		tok := readyToken(t, s)
		source.events <- watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: 500}}
		assert.Equal(t, "policy", <-survived)
		assert.ErrorIs(t, tok.Cause(), invalidation.Closed)
		_, err = s.Get(t.Context(), key("A", "a"))
		assert.ErrorIs(t, err, ErrNotReady)
		assert.ErrorContains(t, err, "Run ended by a panic")
	})
}
