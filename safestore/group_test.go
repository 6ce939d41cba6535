package safestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// member returns a store to be moved by hand, of that name.
func namedRig(t testing.TB, name string) *rig {
	t.Helper()
	r := newRig(t)
	r.store.name = name
	return r
}

func groupOf(t testing.TB, members ...*rig) *Group {
	t.Helper()
	var all []Readiness
	for _, m := range members {
		all = append(all, m.store)
	}
	g, err := NewGroup("all", all...)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

var errGone = apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "")

// A group is ready with the last of its members, and over with the first: by the
// time that a member's move is done.
func TestGroupMovesWithItsMembers(t *testing.T) {
	a, b := namedRig(t, "a"), namedRig(t, "b")
	g := groupOf(t, a, b)
	assert.Equal(t, token.Pending, g.Token().State())
	a.publishSet(t, "1")
	assert.Equal(t, token.Pending, g.Token().State())
	b.publishSet(t, "1")
	first := g.Token()
	require.Equal(t, token.Ready, first.State())
	require.NoError(t, g.NotReady())
	got, err := g.WaitReady(over())
	require.NoError(t, err)
	assert.Same(t, first, got)

	b.revokeFor(invalidation.NotServed, errGone)
	assert.Equal(t, token.Revoked, first.State())
	var r *invalidation.Revocation
	require.ErrorAs(t, context.Cause(first.Context()), &r)
	assert.Equal(t, invalidation.ResourceGone, r.Reason)
	assert.ErrorContains(t, r, "ResourceGone: b: generation 1 revoked at")
	assert.EqualValues(t, 1, r.Generation)

	err = g.NotReady()
	require.ErrorIs(t, err, ErrNotReady)
	assert.ErrorIs(t, err, invalidation.ResourceGone)
	assert.False(t, apierrors.IsNotFound(err))
	assert.ErrorContains(t, err, "group all, generation 2: 1 of its 2 members not ready; store is not ready: b, generation 2")
	b.publishSet(t, "2")
	assert.EqualValues(t, 2, g.Token().Generation())
	assert.NoError(t, g.NotReady())
}

// C11: one member that is not served leaves the others alone, and is the one that
// the group names.
func TestC11OneOfSevenIsNotServed(t *testing.T) {
	var rigs []*rig
	for i := range 7 {
		rigs = append(rigs, namedRig(t, fmt.Sprint("member ", i)))
	}
	g := groupOf(t, rigs...)
	rigs[3].Begin()
	rigs[3].revokeFor(invalidation.NotServed, errGone)
	for i, r := range rigs {
		if i != 3 {
			r.publishSet(t, "1", mapOf("A", "a", "1"))
			_, err := r.Get(t.Context(), key("A", "a"))
			assert.NoError(t, err)
		}
	}
	var e *GroupError
	require.ErrorAs(t, g.NotReady(), &e)
	require.Len(t, e.Members, 1)
	var member *NotReadyError
	require.ErrorAs(t, e.Members[0], &member)
	assert.Equal(t, "member 3", member.Store)
	assert.ErrorIs(t, e, invalidation.ResourceGone)
	assert.NotErrorIs(t, e, invalidation.Forbidden)

	joint, err := g.ReadySnapshot()
	require.ErrorAs(t, err, &e)
	assert.Len(t, joint.ResourceVersions(), 6)
	_, err = rigs[3].In(joint)
	assert.EqualError(t, err, "safestore: member 3 is not in the snapshot of the group")
	one, err := rigs[4].In(joint)
	require.NoError(t, err)
	assert.Equal(t, 1, one.Len())
	assert.Len(t, g.Stores(), 7)
}

// C55: whatever the members do, a group is ready exactly when all are, and its
// hooks hear of each edge once and in order.
func TestC55GroupFollowsAnyMoves(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			rigs := []*rig{namedRig(t, "a"), namedRig(t, "b"), namedRig(t, "c")}
			inner := groupOf(t, rigs[0], rigs[1])
			g, err := NewGroup("outer", inner, rigs[2].store)
			require.NoError(t, err)
			t.Cleanup(g.Close)
			var mu sync.Mutex
			var heard []string
			hear := func(what string, generation uint64) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, fmt.Sprint(what, " ", generation))
			}
			g.OnReady(func(tok *token.Token) { hear("ready", tok.Generation()) })
			g.OnRevoke(func(r *invalidation.Revocation) { hear("revoked", r.Generation) })
			var want []string
			was := g.Token()
			for range 40 {
				r := rigs[rnd.IntN(3)]
				before := r.Token()
				switch rnd.IntN(4) {
				case 0:
					r.revokeFor(invalidation.StreamStuck, errors.New("silent"))
				case 1:
					r.Begin()
					r.undamp()
					r.Publish("9", watcher.Proof{AsOf: time.Now()}) // gapless if it was ready
				default:
					r.publishSet(t, "9")
				}
				all := true
				for _, r := range rigs {
					all = all && r.Token().State() == token.Ready
				}
				now := g.Token()
				require.Equal(t, all, now.State() == token.Ready, "seed %d", seed)
				if was.WasReady() && r.Token() != before {
					require.NotSame(t, was, now, "seed %d: a group does not outlive a token of its members", seed)
				}
				if now != was && was.WasReady() {
					require.Equal(t, token.Revoked, was.State())
					want = append(want, fmt.Sprint("revoked ", was.Generation()))
				}
				if now.State() == token.Ready && (len(want) == 0 || want[len(want)-1] != fmt.Sprint("ready ", now.Generation())) {
					want = append(want, fmt.Sprint("ready ", now.Generation()))
				}
				was = now
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, want, heard, "seed %d", seed)
		})
	}
}

func TestGroupMembersComeAndGo(t *testing.T) {
	a, b, c := namedRig(t, "a"), namedRig(t, "b"), namedRig(t, "c")
	g, err := NewGroup("g")
	require.NoError(t, err)
	defer g.Close()
	assert.EqualError(t, g.NotReady(), "store is not ready: group g, generation 1: there are no members")

	a.publishSet(t, "1")
	b.publishSet(t, "1")
	require.NoError(t, g.Add(a.store))
	first := g.Token()
	require.Equal(t, token.Ready, first.State())
	require.NoError(t, g.Add(b.store))
	assert.Same(t, first, g.Token(), "one more that is ready ends nothing")
	require.NoError(t, g.Add(c.store))
	assert.Equal(t, token.Revoked, first.State())
	assert.ErrorContains(t, first.Cause(), "Requested: c was added and is not ready")
	assert.True(t, g.Remove("c"))
	assert.False(t, g.Remove("c"))
	second := g.Token()
	assert.Equal(t, token.Ready, second.State(), "nobody else was waited for")
	c.publishSet(t, "1")
	c.revokeFor(invalidation.StreamStuck, nil)
	assert.Same(t, second, g.Token(), "what has left is not followed")
	assert.Empty(t, c.followers)

	assert.True(t, g.Remove("a"))
	assert.True(t, g.Remove("b"))
	assert.ErrorContains(t, second.Cause(), "there are no members")
	assert.Empty(t, g.Members())
}

func TestGroupMisuse(t *testing.T) {
	a := namedRig(t, "a")
	_, err := NewGroup("")
	assert.EqualError(t, err, "safestore: NewGroup without a name")
	_, err = NewGroup("g", nil)
	assert.EqualError(t, err, "safestore: group g: the member is nil")
	_, err = NewGroup("g", (*store)(nil))
	assert.EqualError(t, err, "safestore: group g: the member is nil")
	_, err = NewGroup("g", a.store, a.store)
	assert.EqualError(t, err, `safestore: group g has the member "a" already`)
	_, err = NewGroup("g", a.store, namedRig(t, "a").store)
	assert.EqualError(t, err, `safestore: group g has a member "a" already: give one a name of its own, by Options.Name or NewGroup`)
	assert.Empty(t, a.followers, "nothing of it is left")

	g, outer := groupOf(t, a), groupOf(t)
	require.NoError(t, outer.Add(g))
	assert.EqualError(t, g.Add(g), "safestore: group all would be its own member")
	assert.EqualError(t, g.Add(outer), "safestore: group all would be its own member")
	a.publishSet(t, "1")
	tok := outer.Token()
	require.Equal(t, token.Ready, tok.State())

	g.Close()
	g.Close()
	assert.ErrorIs(t, tok.Cause(), invalidation.Closed)
	assert.ErrorContains(t, g.NotReady(), "group all, generation 1: generation 1 revoked at")
	assert.ErrorContains(t, g.Add(a.store), "is closed")
	_, err = g.WaitReady(t.Context())
	assert.ErrorIs(t, err, invalidation.Closed)
	_, err = outer.WaitReady(t.Context())
	assert.ErrorIs(t, err, invalidation.Closed, "it can never be ready again")
	assert.Empty(t, a.followers)
	assert.NoError(t, a.NotReady(), "members go on")
}

func TestGroupWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := namedRig(t, "a"), namedRig(t, "b")
		g := groupOf(t, a, b)
		a.publishSet(t, "1")
		results := make(chan error)
		wait := func(ctx context.Context) {
			go func() {
				_, err := g.WaitSnapshot(ctx)
				results <- err
			}()
			synctest.Wait()
		}
		wait(t.Context())
		b.publishSet(t, "1")
		assert.NoError(t, <-results)

		b.revokeFor(invalidation.NotAllowed, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the reader's own"))
		defer cancel()
		wait(ctx)
		err := <-results
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "gave up waiting: context deadline exceeded: the reader's own")
		assert.ErrorIs(t, err, invalidation.Forbidden)

		// A member that is closed while it is waited for ends the wait.
		wait(t.Context())
		b.close(context.Canceled)
		assert.ErrorIs(t, <-results, invalidation.Closed)

		idle, err := New[*Map](newScripted(), Options{Name: "idle"})
		require.NoError(t, err)
		lazy, err := NewGroup("lazy", idle)
		require.NoError(t, err)
		_, err = lazy.WaitReady(t.Context())
		assert.ErrorIs(t, err, ErrNotStarted, "nobody drives it: an error, not a hang (C14)")
	})
}

// C53: a joint snapshot is of stores that were ready at one time, while they come
// and go.
func TestC53JointSnapshot(t *testing.T) {
	a, b := namedRig(t, "a"), namedRig(t, "b")
	g := groupOf(t, a, b)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, r := range []*rig{a, b} {
		running.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				version := fmt.Sprint(n)
				r.publishSet(t, version, mapOf("A", "a", version))
				_ = r.Apply(watch.Modified, mapOf("A", "a", version+"0"))
				r.revokeFor(invalidation.StreamStuck, nil)
				n *= 10
				if n > 1e15 {
					n = 1
					r.rewound = true
				}
			}
		})
	}
	for taken := 0; taken < 300; {
		joint, err := g.Snapshot()
		if err != nil {
			assert.ErrorIs(t, err, ErrNotReady)
			continue
		}
		taken++
		versions := joint.ResourceVersions()
		for _, r := range []*rig{a, b} {
			one, err := r.In(joint)
			require.NoError(t, err)
			assert.Equal(t, one.ResourceVersion(), versions[r.name])
			obj, err := one.Get(key("A", "a"))
			require.NoError(t, err)
			assert.Equal(t, one.ResourceVersion(), obj.ResourceVersion)
			assert.True(t, one.Token().WasReady())
			if joint.Token().State() == token.Ready {
				continue
			}
			var r *invalidation.Revocation
			assert.ErrorAs(t, joint.Token().Cause(), &r)
		}
	}
	close(stop)
	running.Wait()
}

// A group that a blocking hook holds back says so, and after which revocation.
func TestGroupThatIsHeldBackSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := namedRig(t, "a")
		g := groupOf(t, a)
		a.publishSet(t, "1")
		defer g.OnRevokeSync(time.Minute, func(ctx context.Context, _ *invalidation.Revocation) { <-ctx.Done() })()
		a.revokeFor(invalidation.StreamStuck, errors.New("silent"))
		a.publishSet(t, "2")
		synctest.Wait()
		for _, err := range []error{g.NotReady(), func() error { _, err := g.WaitReady(over()); return err }()} {
			var r *invalidation.Revocation
			require.ErrorAs(t, err, &r)
			assert.EqualValues(t, 1, r.Generation)
			assert.ErrorContains(t, err, "store is not ready: group all, generation 2: "+
				"all members are ready; a blocking hook has not done with: generation 1 revoked at")
			assert.ErrorContains(t, err, "Stuck: a: generation 1")
			assert.ErrorIs(t, err, invalidation.Stuck)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.NoError(t, g.NotReady())
	})
}

// Of two groups that are made each other's members at the same time one is refused.
func TestGroupsAreNotEachOthersMembers(t *testing.T) {
	for range 500 {
		a, b := groupOf(t), groupOf(t)
		var adding sync.WaitGroup
		var errs [2]error
		adding.Go(func() { errs[0] = a.Add(b) })
		adding.Go(func() { errs[1] = b.Add(a) })
		adding.Wait()
		require.False(t, errs[0] == nil && errs[1] == nil)
	}
}

// Stores of one name in two groups are both in the snapshot of a group of these, and
// one that is in both is there once.
func TestSnapshotOfStoresOfOneName(t *testing.T) {
	a, b, c := namedRig(t, "maps"), namedRig(t, "maps"), namedRig(t, "shared")
	one, err := NewGroup("one", a.store, c.store)
	require.NoError(t, err)
	defer one.Close()
	two, err := NewGroup("two", b.store, c.store)
	require.NoError(t, err)
	defer two.Close()
	g, err := NewGroup("both", one, two)
	require.NoError(t, err)
	defer g.Close()
	for version, r := range map[string]*rig{"1": a, "2": b, "3": c} {
		r.publishSet(t, version)
	}
	joint, err := g.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"maps": "1", "maps#2": "2", "shared": "3"}, joint.ResourceVersions())

	a.revokeFor(invalidation.StreamStuck, nil)
	c.revokeFor(invalidation.StreamStuck, nil)
	joint, err = g.ReadySnapshot()
	var e *GroupError
	require.ErrorAs(t, err, &e)
	assert.Len(t, e.Members, 2, "each once")
	assert.Equal(t, map[string]string{"maps#2": "2"}, joint.ResourceVersions())
}
