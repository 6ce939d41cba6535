package safestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// country is a server with namespaces, and those of them that a program reads.
type country struct {
	*Namespaces[*Map]
	t       *testing.T
	stop    func()
	mu      sync.Mutex
	sources map[string]*scripted
}

// inCountry runs a test in a bubble, with namespaces of two objects each, a and b,
// that are read of a running store.
func inCountry(t *testing.T, test func(*testing.T, *country), namespaces ...string) {
	synctest.Test(t, func(t *testing.T) {
		c := &country{t: t, sources: map[string]*scripted{}}
		source := func(namespace string) watcher.Source { return c.source(namespace) }
		var err error
		c.Namespaces, err = NewNamespaces[*Map](source, namespaces, Options{Name: "maps"})
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(klog.NewContext(t.Context(), klog.Logger{}))
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		c.stop = sync.OnceFunc(func() {
			cancel(errors.New("the test is over"))
			assert.NoError(t, <-done)
		})
		defer c.stop()
		synctest.Wait()
		test(t, c)
	})
}

// source returns the server's side of a namespace.
func (c *country) source(namespace string) *scripted {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sources[namespace] == nil {
		c.sources[namespace] = sourceOf(mapList("10", mapOf(namespace, "a", "1"), mapOf(namespace, "b", "2")))
	}
	return c.sources[namespace]
}

// forbid has a namespace refused, with the next list.
func (c *country) forbid(namespace string) {
	c.source(namespace).answer(nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil))
}

func (c *country) contents() string {
	snapshot, err := c.Snapshot()
	if err != nil {
		return err.Error()
	}
	return contents(snapshot)
}

// told is what the listener was told since it was last asked, in any order but for
// that of the phases, which the listener sees to.
func told(t *testing.T, l *listener, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.wrong)
	require.ElementsMatch(t, want, l.heard)
	l.heard = nil
}

// Namespaces come and go while they are read and followed: a subscriber has what is
// read, and is told of what is covered no more as deleted.
func TestNamespacesComeAndGo(t *testing.T) {
	inCountry(t, func(t *testing.T, c *country) {
		l := listen(t, c.Namespaces, nil)
		told(t, l, "Init 1", "Added a 1", "Added b 2", "Added a 1", "Added b 2", "InitDone 1")
		first := c.Token()
		c.source("x").events <- watch.Event{Type: watch.Deleted, Object: mapOf("x", "a", "11")}
		told(t, l, "Deleted a 1")

		require.NoError(t, c.Add("z"))
		assert.ErrorContains(t, first.Cause(), "Requested: maps in z was added and is not ready")
		told(t, l, "Revoked 1 Requested", "Init 2", "Added a 1", "Added b 2", "InitDone 2")
		second := c.Token()
		assert.Equal(t, []string{"x", "y", "z"}, c.Names())

		y, ok := c.Store("y")
		require.True(t, ok)
		before, err := c.Snapshot()
		require.NoError(t, err)
		assert.True(t, c.Remove("y"))
		assert.False(t, c.Remove("y"))
		assert.Equal(t, "x/b=uid of x/b@2 z/a=uid of z/a@1 z/b=uid of z/b@2", c.contents(), "when Remove returns")
		after, err := c.Snapshot()
		require.NoError(t, err)
		assert.Equal(t, before.steps+2, after.steps, "as with a list: the same number would be no change")
		_, err = c.Get(t.Context(), key("y", "a"))
		assert.EqualError(t, err, `safestore: maps: namespace "y" is out of the store's scope: it is none of its namespaces`)
		told(t, l, "Deleted a 1, final state unknown", "Deleted b 2, final state unknown")
		assert.Same(t, second, c.Token(), "nobody who reads the others is concerned")
		assert.ErrorIs(t, y.NotReady(), invalidation.Closed)
		assert.ErrorContains(t, y.NotReady(), `"y" was removed from maps`)

		// One that was created again has nothing of its predecessor.
		c.source("y").answer(mapList("20", mapOf("y", "c", "15")), nil)
		require.NoError(t, c.Add("y"))
		told(t, l, "Revoked 2 Requested", "Init 3", "Added c 15", "InitDone 3")
		_, err = c.Get(t.Context(), key("y", "a"))
		assert.True(t, apierrors.IsNotFound(err))

		for _, namespace := range c.Names() {
			assert.True(t, c.Remove(namespace))
		}
		assert.ErrorContains(t, c.NotReady(), "there are no members")
		_, err = c.List(over())
		assert.ErrorIs(t, err, ErrNotReady)
		c.stop()
		assert.ErrorContains(t, c.Add("x"), "safestore: maps has ended")
	}, "x", "y")
}

// A set may begin with no namespaces.
func TestNamespacesBeginWithNone(t *testing.T) {
	inCountry(t, func(t *testing.T, c *country) {
		assert.EqualError(t, c.NotReady(), "store is not ready: group maps, generation 1: there are no members")
		assert.ErrorIs(t, c.Sync(t.Context()), ErrNotReady)
		require.NoError(t, c.Add("x"))
		list, err := c.List(t.Context())
		require.NoError(t, err)
		assert.Len(t, list, 2)
	})
}

// Whoever waits for a namespace that is taken away hears so, and those who waited
// for all of them go on.
func TestWaitForANamespaceThatIsRemoved(t *testing.T) {
	inCountry(t, func(t *testing.T, c *country) {
		c.forbid("y")
		require.NoError(t, c.Add("y"))
		one, all := make(chan error), make(chan error)
		go func() { _, err := c.Get(t.Context(), key("y", "a")); one <- err }()
		go func() { all <- c.Sync(t.Context()) }()
		_, err := c.Snapshot()
		synctest.Wait()
		assert.ErrorContains(t, err, "1 of its 2 members not ready; store is not ready: maps in y")
		some, err := c.ReadySnapshot()
		assert.ErrorIs(t, err, ErrNotReady)
		assert.Equal(t, "x/a=uid of x/a@1 x/b=uid of x/b@2", contents(some))
		_, err = some.Get(key("y", "a"))
		assert.ErrorIs(t, err, ErrNotReady, "it is not said to be absent")
		_, err = some.List(InNamespace("y"))
		assert.ErrorIs(t, err, ErrNotReady)

		assert.True(t, c.Remove("y"))
		assert.Equal(t, token.Ready, c.Token().State(), "when Remove returns")
		assert.ErrorIs(t, <-one, invalidation.Closed)
		assert.NoError(t, <-all)
		some, err = c.ReadySnapshot()
		assert.NoError(t, err)
		assert.Equal(t, 2, some.Len())
	}, "x")
}

// Namespaces are waited for as a store is.
func TestNamespacesWaitForWrites(t *testing.T) {
	inCountry(t, func(t *testing.T, c *country) {
		require.NoError(t, c.Sync(t.Context()))
		written := mapOf("y", "a", "12")
		results := make(chan error, 3)
		go func() { results <- c.WaitFor(t.Context(), written) }()
		go func() { results <- c.WaitForDeletion(t.Context(), mapOf("y", "b", "2")) }()
		go func() { results <- c.WaitForVersion(t.Context(), "13") }()
		synctest.Wait()
		assert.Empty(t, results)
		y := c.source("y").events
		y <- watch.Event{Type: watch.Modified, Object: written}
		assert.NoError(t, <-results)
		y <- watch.Event{Type: watch.Deleted, Object: mapOf("y", "b", "13")}
		assert.NoError(t, <-results)
		synctest.Wait()
		assert.Empty(t, results, "not all namespaces have the version")
		c.source("x").events <- watch.Event{Type: watch.Bookmark, Object: &Map{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "13"}}}
		assert.NoError(t, <-results)
		assert.ErrorContains(t, c.WaitFor(t.Context(), mapOf("z", "a", "1")), `namespace "z" is out of the store's scope`)

		old, age := c.Stale()
		assert.Equal(t, 3, old.Len())
		assert.Zero(t, age)
	}, "x", "y")
}

// Run returns after the functions that are waited for, and everybody who waits hears
// of the end, with its cause.
func TestNamespacesEnd(t *testing.T) {
	inCountry(t, func(t *testing.T, c *country) {
		sub := c.Subscribe("one")
		ended := make(chan error)
		go func() { ended <- sub.Handle(context.Background(), func(Change[*Map]) error { return nil }) }()
		_, err := sub.WaitCaughtUp(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "one", c.Status().Subscriptions[0].Name)
		assert.Equal(t, map[string]float64{"safestore_subscription_changes_total maps one": 4},
			samples([]Readiness{c}, "safestore_subscription_changes"))
		var acted atomic.Bool
		c.OnRevokeSync(time.Minute, func(context.Context, *invalidation.Revocation) {
			time.Sleep(30 * time.Second)
			acted.Store(true)
		})
		tok := c.Token()
		c.stop()
		assert.True(t, acted.Load())
		assert.ErrorIs(t, tok.Cause(), invalidation.Closed)
		for _, err := range []error{<-ended, c.NotReady(), c.Sync(t.Context()), func() error { _, err := c.List(t.Context()); return err }()} {
			assert.ErrorIs(t, err, invalidation.Closed)
			assert.ErrorContains(t, err, "the test is over")
		}
		assert.ErrorIs(t, c.Run(t.Context()), ErrRunTwice)
	}, "x", "y")
}

// A store that somebody else runs ends the set, with that error.
func TestStoreSetWithAStoreThatSomebodyElseRuns(t *testing.T) {
	client := newScripted()
	set, err := NewStoreSet("all", func(name string) (*store, error) {
		return New[*Map](client, Options{Name: name})
	}, "a", "b")
	require.NoError(t, err)
	a, _ := set.Store("a")
	defer start(t, a)(nil)
	readyToken(t, a)
	assert.ErrorIs(t, set.Run(t.Context()), ErrRunTwice)
	assert.ErrorIs(t, set.NotReady(), invalidation.Closed)
}

// The stores of a set are those of clusters, for example, that have the same keys.
func TestStoreSetOfClusters(t *testing.T) {
	sources := map[string]*scripted{"eu": sourceOf(mapList("10", mapOf("ns", "a", "1"))), "us": sourceOf(mapList("7", mapOf("ns", "a", "2")))}
	set, err := NewStoreSet("maps", func(cluster string) (*store, error) {
		return New[*Map](sources[cluster], Options{Name: "maps in " + cluster})
	}, "eu")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	done := make(chan error)
	go func() { done <- set.Run(ctx) }()
	require.NoError(t, set.Add("us"))
	joint, err := set.WaitSnapshot(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"maps in eu": "10", "maps in us": "7"}, joint.ResourceVersions())
	for name, version := range map[string]string{"eu": "1", "us": "2"} {
		one, ok := set.Store(name)
		require.True(t, ok)
		snapshot, err := one.In(joint)
		require.NoError(t, err)
		obj, err := snapshot.Get(key("ns", "a"))
		require.NoError(t, err)
		assert.Equal(t, version, obj.ResourceVersion)
	}
	require.NoError(t, set.Sync(t.Context()))
	assert.Len(t, set.Members(), 2)
	cancel()
	assert.NoError(t, <-done)
}

func TestStoreSetMisuse(t *testing.T) {
	_, err := NewStoreSet[*Map]("all", nil)
	assert.EqualError(t, err, "safestore: NewStoreSet without a function that makes stores")
	one := newStore(t, newScripted())
	same := func(string) (*store, error) { return one, nil }
	_, err = NewStoreSet("", same)
	assert.EqualError(t, err, "safestore: NewStoreSet without a name")
	_, err = NewStoreSet("all", same, "a", "b")
	assert.EqualError(t, err, `safestore: group all has the member "v1.ConfigMap" already`)
	assert.Empty(t, one.followers, "nothing of it is left")
	_, err = NewStoreSet("all", func(string) (*store, error) { return nil, nil }, "a")
	assert.EqualError(t, err, `safestore: all: "a": there is neither a store nor an error`)
	start(t, one)(nil)
	_, err = NewStoreSet("all", same, "a")
	assert.ErrorIs(t, err, ErrRunTwice)

	// One that never runs.
	set, err := NewStoreSet("all", func(string) (*store, error) { return New[*Map](newScripted(), Options{}) }, "a")
	require.NoError(t, err)
	a, _ := set.Store("a")
	assert.True(t, set.Remove("a"))
	assert.ErrorIs(t, a.NotReady(), invalidation.Closed)
}

// A subscription is of the namespaces that there are.
func TestSubscriptionToANamespace(t *testing.T) {
	inCountry(t, func(t *testing.T, c *country) {
		err := c.Subscribe("one", InNamespace("z")).Handle(t.Context(), func(Change[*Map]) error { return nil })
		assert.EqualError(t, err, `safestore: maps: namespace "z" is out of the store's scope: it is none of its namespaces`)
		l := listen(t, c.Namespaces, nil, InNamespace("y"))
		told(t, l, "Init 1", "Added a 1", "Added b 2", "InitDone 1")
		c.source("x").events <- watch.Event{Type: watch.Deleted, Object: mapOf("x", "a", "11")}
		told(t, l)
		c.Remove("y")
		told(t, l, "Deleted a 1, final state unknown", "Deleted b 2, final state unknown")
	}, "x", "y")
}

// The snapshot of a group has the namespaces that there were when it was taken.
func TestNamespacesInTheSnapshotOfAGroup(t *testing.T) {
	inCountry(t, func(t *testing.T, c *country) {
		g, err := NewGroup("both", c.Namespaces, namedRig(t, "idle").store)
		require.NoError(t, err)
		defer g.Close()
		g.Remove("idle")
		joint, err := g.Snapshot()
		require.NoError(t, err)
		require.NoError(t, c.Add("z"))
		c.Remove("x")
		all, err := c.In(joint)
		require.NoError(t, err)
		assert.Equal(t, 4, all.Len())
		assert.Same(t, joint.Token(), all.Token())
		_, err = all.Get(key("z", "a"))
		assert.ErrorContains(t, err, `namespace "z" is out of the store's scope`)
		one, err := NewGroup("other", namedRig(t, "other").store)
		require.NoError(t, err)
		defer one.Close()
		foreign, _ := one.ReadySnapshot()
		_, err = c.In(foreign)
		assert.EqualError(t, err, "safestore: maps is not in the snapshot of the group")
	}, "x", "y")
}

// Whatever comes and goes, a snapshot has all of the namespaces that it is of, and a
// subscriber has what the newest one has.
func TestNamespacesThatComeAndGoAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		inCountry(t, func(t *testing.T, c *country) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			l := listen(t, c.Namespaces, nil)
			stop := make(chan struct{})
			var reading sync.WaitGroup
			reading.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					snapshot, err := c.Snapshot()
					if err != nil {
						assert.ErrorIs(t, err, ErrNotReady)
						continue
					}
					for namespace := range snapshot.only.namespaces {
						_, err := snapshot.Get(key(namespace, "a"))
						assert.NoError(t, err, "seed %d", seed)
					}
				}
			})
			version := 100
			for range 40 {
				namespace := fmt.Sprint("n", rnd.IntN(4))
				one, has := c.Store(namespace)
				switch rnd.IntN(5) {
				case 0:
					assert.Equal(t, has, c.Remove(namespace))
				case 1:
					assert.Equal(t, has, c.Add(namespace) != nil)
				case 2:
					if has {
						one.Revoke(one.Token(), nil)
					}
				default:
					if has && one.NotReady() == nil {
						version++
						c.source(namespace).events <- watch.Event{Type: watch.Modified, Object: mapOf(namespace, "a", fmt.Sprint(version))}
					}
				}
				time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			}
			if len(c.Names()) == 0 {
				require.NoError(t, c.Add("n0"))
			}
			_, err := c.WaitReady(t.Context())
			require.NoError(t, err)
			synctest.Wait()
			close(stop)
			reading.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			snapshot, err := c.Snapshot()
			require.NoError(t, err)
			assert.Len(t, l.has, snapshot.Len(), "seed %d", seed)
			for k, obj := range snapshot.All() {
				// What left and came back before it was noticed is the same, and has not changed.
				assert.Equal(t, identityOf(obj), identityOf(l.has[k]), "seed %d", seed)
			}
		}, "n0", "n1")
	}
}
