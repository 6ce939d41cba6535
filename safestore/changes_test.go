package safestore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// These tests are about what a subscriber is told. The listener checks with each
// change that it fits those before it.

// inBubble runs a test on a store that is ready with the object a.
func inBubble(t *testing.T, test func(*testing.T, *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.publishSet(t, "10", mapOf("ns", "a", "1"))
		test(t, r)
	})
}

func (r *rig) set(t testing.TB, name, version string) {
	t.Helper()
	require.NoError(t, r.Apply(watch.Modified, mapOf("ns", name, version)))
}

func (r *rig) delete(t testing.TB, name, version string) {
	t.Helper()
	require.NoError(t, r.Apply(watch.Deleted, mapOf("ns", name, version)))
}

// reprove ends the token, and makes the next one ready without a list.
func (r *rig) reprove() {
	r.revokeFor(invalidation.StreamStuck, errors.New("stuck"))
	r.undamp()
	r.Prove(watcher.Proof{AsOf: time.Now()})
}

// another is an object that has taken the name of another one.
func another(namespace, name, version string) *Map {
	m := mapOf(namespace, name, version)
	m.UID += " of another"
	return m
}

// blocker is what a listener waits for before each change counts as dealt with.
type blocker struct{ gate chan struct{} }

func newBlocker() *blocker { return &blocker{make(chan struct{})} }

func (b *blocker) before(Change[*Map]) { <-b.gate }

// open lets everything through from here on.
func (b *blocker) open() { close(b.gate) }

// pass lets n changes through.
func (b *blocker) pass(n int) {
	for range n {
		b.gate <- struct{}{}
	}
	synctest.Wait()
}

func TestChangesOfOneGeneration(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := listen(t, r.store, nil)
		l.said("Init 1", "Added a 1", "InitDone 1")
		r.set(t, "b", "11")
		l.said("Added b 11")
		r.set(t, "a", "12")
		l.said("Updated a 1 to 12")
		r.Advance("20")
		l.said()
		r.delete(t, "b", "21")
		l.said("Deleted b 11")
		l.same(r.current.Load())
	})
}

func TestChangesWaitForTheFirstSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		l := listen(t, r.store, nil)
		l.said()
		r.Begin()
		require.NoError(t, r.Build(watch.Added, mapOf("ns", "a", "1")))
		l.said()
		r.put(t, "10")
		l.said("Init 1", "Added a 1", "InitDone 1")
	})
}

// Guarantee 7: a revocation deletes nothing, whether the set is kept, listed again
// or dropped. What is different when the store is ready again is told then.
func TestChangesAcrossGenerations(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := listen(t, r.store, nil)
		l.said("Init 1", "Added a 1", "InitDone 1")
		r.reprove()
		l.said("Revoked 1 Stuck", "Init 2", "InitDone 2")

		r.revokeFor(invalidation.VersionExpired, nil)
		l.said("Revoked 2 Relist")
		r.publishSet(t, "20", mapOf("ns", "a", "1"), mapOf("ns", "b", "15"))
		l.said("Init 3", "Added b 15", "InitDone 3")

		r.revokeFor(invalidation.NotAllowed, errors.New("forbidden"))
		l.said("Revoked 3 Forbidden")
		r.publishSet(t, "30", mapOf("ns", "a", "25"), mapOf("ns", "b", "15"))
		l.said("Init 4", "Updated a 1 to 25", "InitDone 4")

		r.revokeFor(invalidation.NotAllowed, errors.New("forbidden"))
		r.publishSet(t, "40", mapOf("ns", "a", "25"))
		l.said("Revoked 4 Forbidden", "Init 5", "Deleted b 15, final state unknown", "InitDone 5")
		l.same(r.current.Load())
	})
}

// A set that is listed while the token is kept succeeds it in one step.
func TestChangesWithoutAGap(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		b := newBlocker()
		l := listen(t, r.store, b.before)
		b.pass(3)
		l.said("Init 1", "Added a 1", "InitDone 1")
		for range 2 {
			r.publishSet(t, "20", mapOf("ns", "b", "15"))
		}
		b.open()
		synctest.Wait()
		assert.Equal(t, uint64(3), r.Token().Generation())
		l.mu.Lock()
		heard := slices.Clone(l.heard)
		l.mu.Unlock()
		assert.Contains(t, []string{
			"[Revoked 1 Relist Init 3 Added b 15 Deleted a 1, final state unknown InitDone 3]",
			"[Revoked 1 Relist Init 3 Deleted a 1, final state unknown Added b 15 InitDone 3]",
		}, fmt.Sprint(heard))
		l.same(r.current.Load())
	})
}

// Without a gap the next token is there for a moment before the last one is over.
func TestChangesBetweenTwoTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := listen(t, r.store, nil)
		l.said("Init 1", "Added a 1", "InitDone 1")
		old := r.Token()
		_, ok := r.tokens.Succeed(old, r.revocation(old, invalidation.Relist, nil), func(fresh *token.Token) {
			next := *r.current.Load()
			next.token = fresh
			r.store.store(&next)
			l.said()
		}, func(*token.Token) { l.said() })
		assert.True(t, ok)
		l.said("Revoked 1 Relist", "Init 2", "InitDone 2")
	})
}

// What was not handed out of a set when its token ended is handed out under the
// next one, and nothing twice.
func TestChangesOfASetThatIsRevoked(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var set []*Map
		for i := range 10 {
			set = append(set, mapOf("ns", fmt.Sprint(i), "1"))
		}
		r.revokeFor(invalidation.VersionExpired, nil)
		r.publishSet(t, "20", set...)

		b := newBlocker()
		l := listen(t, r.store, b.before)
		b.pass(1 + 4) // Init, and four objects; the fifth is under way
		r.revokeFor(invalidation.StreamStuck, nil)
		b.pass(1)
		l.mu.Lock()
		assert.Len(t, l.has, 5)
		var gone string
		for k := range l.has {
			gone = k.Name
		}
		l.mu.Unlock()
		b.pass(1)
		l.mu.Lock()
		assert.Equal(t, "Revoked 2 Stuck", l.heard[len(l.heard)-1])
		l.heard = nil
		l.mu.Unlock()
		assert.Nil(t, l.sub.CaughtUp())

		r.delete(t, gone, "21") // it is known to the watcher, and not yet proven to be all
		l.said()
		r.undamp()
		r.Prove(watcher.Proof{AsOf: time.Now()})
		b.open()
		synctest.Wait()
		l.mu.Lock()
		assert.Len(t, l.heard, 1+5+1+1, "the other five, and one delete")
		assert.Equal(t, "Init 3", l.heard[0])
		assert.Contains(t, l.heard, "Deleted "+gone+" 1, final state unknown")
		assert.Equal(t, "InitDone 3", l.heard[len(l.heard)-1])
		l.mu.Unlock()
		l.same(r.current.Load())
	})
}

// Generations that came and went while a subscriber was busy are not told; those
// that are told alternate all the same (C55).
func TestChangesSkipGenerations(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		b := newBlocker()
		l := listen(t, r.store, b.before)
		b.pass(2)
		for range 3 {
			r.reprove()
		}
		r.set(t, "a", "11")
		b.pass(1)
		l.said("Init 1", "Added a 1", "InitDone 1")
		b.open()
		l.said("Revoked 1 Stuck", "Init 4", "Updated a 1 to 11", "InitDone 4")
	})
}

// C36: equal UID and version is no change, wherever the copy comes from.
func TestC36UnchangedIsNoChange(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := listen(t, r.store, nil)
		l.said("Init 1", "Added a 1", "InitDone 1")
		r.set(t, "a", "1")
		l.said()
		for n, seen := range []invalidation.Sighting{
			invalidation.VersionExpired, invalidation.NotAllowed, invalidation.VersionRewound,
		} {
			r.revokeFor(seen, watcher.ErrOutOfOrder)
			r.publishSet(t, "20", mapOf("ns", "a", "1"))
			reason := invalidation.Default(invalidation.Observation{Seen: seen}).Revoke
			l.said(fmt.Sprintf("Revoked %d %s", n+1, string(reason)), fmt.Sprint("Init ", n+2), fmt.Sprint("InitDone ", n+2))
		}
	})
}

// A server that was rewound gives a version a second time, for something else.
func TestChangesAfterARewind(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var got []string
		l := listen(t, r.store, func(c Change[*Map]) {
			if c.Type == Updated {
				got = append(got, c.Old.Data["key"]+" to "+c.New.Data["key"])
			}
		})
		r.set(t, "b", "11")
		synctest.Wait()
		r.revokeFor(invalidation.VersionRewound, watcher.ErrOutOfOrder)
		rewritten := mapOf("ns", "b", "11")
		rewritten.Data = map[string]string{"key": "rewritten"}
		r.publishSet(t, "11", mapOf("ns", "a", "1"), rewritten)
		synctest.Wait()
		assert.Equal(t, []string{" to rewritten"}, got)
		l.wrong = "" // the listener goes by versions
	})
}

// C39: each delete brings the last known object, and says whether that may have
// changed before it was deleted.
func TestC39FinalState(t *testing.T) {
	for name, test := range map[string]struct {
		busy   bool // the subscriber is, while this happens
		happen func(t *testing.T, r *rig)
		want   []string
	}{
		"one event": {
			happen: func(t *testing.T, r *rig) { r.delete(t, "a", "11") },
			want:   []string{"Deleted a 1"},
		},
		"one event while busy": {
			busy:   true,
			happen: func(t *testing.T, r *rig) { r.delete(t, "a", "11") },
			want:   []string{"Deleted a 1"},
		},
		"one event and a bookmark": {
			busy:   true,
			happen: func(t *testing.T, r *rig) { r.delete(t, "a", "11"); r.Advance("12") },
			want:   []string{"Deleted a 1"},
		},
		"changed before, unseen": {
			busy:   true,
			happen: func(t *testing.T, r *rig) { r.set(t, "a", "11"); r.delete(t, "a", "12") },
			want:   []string{"Deleted a 1, final state unknown"},
		},
		"changed before, seen": {
			happen: func(t *testing.T, r *rig) { r.set(t, "a", "11"); synctest.Wait(); r.delete(t, "a", "12") },
			want:   []string{"Updated a 1 to 11", "Deleted a 11"},
		},
		"one event that came late": {
			happen: func(t *testing.T, r *rig) {
				r.revokeFor(invalidation.StreamStuck, nil)
				r.delete(t, "a", "11")
				r.undamp()
				r.Prove(watcher.Proof{AsOf: time.Now()})
			},
			want: []string{"Revoked 1 Stuck", "Init 2", "Deleted a 1", "InitDone 2"},
		},
		"a list": {
			happen: func(t *testing.T, r *rig) { r.revokeFor(invalidation.VersionExpired, nil); r.publishSet(t, "20") },
			want:   []string{"Revoked 1 Relist", "Init 2", "Deleted a 1, final state unknown", "InitDone 2"},
		},
		"a list after all was dropped": {
			happen: func(t *testing.T, r *rig) { r.revokeFor(invalidation.NotServed, nil); r.publishSet(t, "20") },
			want:   []string{"Revoked 1 ResourceGone", "Init 2", "Deleted a 1, final state unknown", "InitDone 2"},
		},
		"added and deleted, unseen": {
			busy:   true,
			happen: func(t *testing.T, r *rig) { r.set(t, "b", "11"); r.delete(t, "b", "12") },
			want:   nil,
		},
		"deleted and added, unseen": {
			busy: true,
			happen: func(t *testing.T, r *rig) {
				r.delete(t, "a", "11")
				require.NoError(t, r.Apply(watch.Added, another("ns", "a", "12")))
			},
			want: []string{"Deleted a 1, final state unknown", "Added a 12"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				b := newBlocker()
				l := listen(t, r.store, b.before)
				b.pass(2)
				if !test.busy {
					b.open()
					l.said("Init 1", "Added a 1", "InitDone 1")
				}
				test.happen(t, r)
				if test.busy {
					b.pass(1)
					l.said("Init 1", "Added a 1", "InitDone 1")
					b.open()
				}
				l.said(test.want...)
				l.same(r.current.Load())
			})
		})
	}
}

// C40: another UID is another object, from an event, a list or several events at
// once; the one that was there is deleted first.
func TestC40AnotherUnderTheSameName(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		l := listen(t, r.store, nil)
		l.said("Init 1", "Added a 1", "InitDone 1")
		require.NoError(t, r.Apply(watch.Modified, another("ns", "a", "11"))) // the delete was missed
		l.said("Deleted a 1, final state unknown", "Added a 11")
		r.revokeFor(invalidation.VersionExpired, nil)
		r.publishSet(t, "20", mapOf("ns", "a", "15"))
		l.said("Revoked 1 Relist", "Init 2", "Deleted a 11, final state unknown", "Added a 15", "InitDone 2")
	})
}

// The token may end between the two: what follows is still right.
func TestC40RevokedBetweenDeleteAndAdd(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		b := newBlocker()
		l := listen(t, r.store, b.before)
		b.pass(3)
		require.NoError(t, r.Apply(watch.Modified, another("ns", "a", "11")))
		synctest.Wait()
		r.reprove()
		b.open()
		l.said("Init 1", "Added a 1", "InitDone 1",
			"Deleted a 1, final state unknown", "Revoked 1 Stuck", "Init 2", "Added a 11", "InitDone 2")
	})
}

// A subscription of a part hears of what comes into it and of what leaves it.
func TestChangesOfAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labelled := func(namespace, name, version, app string) *Map {
			m := mapOf(namespace, name, version)
			m.Labels = map[string]string{"app": app}
			return m
		}
		r := newRig(t)
		r.publishSet(t, "10", labelled("ns", "a", "1", "x"), labelled("ns", "b", "2", "y"), labelled("other", "a", "3", "x"))
		opts := []ListOption{InNamespace("ns"), MatchingLabels(map[string]string{"app": "x"})}
		l := listen(t, r.store, nil, opts...)
		l.said("Init 1", "Added a 1", "InitDone 1")
		for _, m := range []*Map{
			labelled("ns", "b", "11", "z"), labelled("other", "b", "12", "x"), // none of its business
			labelled("ns", "a", "13", "z"), labelled("ns", "b", "14", "x"), labelled("ns", "b", "15", "x"),
		} {
			require.NoError(t, r.Apply(watch.Modified, m))
			synctest.Wait()
		}
		l.said("Deleted a 1", "Added b 14", "Updated b 14 to 15")
		l.same(r.current.Load(), opts...)
		r.revokeFor(invalidation.VersionExpired, nil)
		r.publishSet(t, "20")
		l.said("Revoked 1 Relist", "Init 2", "Deleted b 15, final state unknown", "InitDone 2")
	})
}

// An object that exists and cannot be shown is not deleted. What is told about it
// later goes by what the subscriber got last.
func TestChangesOfWhatIsHeldBack(t *testing.T) {
	hold := func(r *rig, names ...string) {
		next := *r.current.Load()
		next.set.bad = objects[*BadObjectError]{}
		edit := r.edit(next.set)
		for _, name := range names {
			require.NoError(t, edit.quarantine(&BadObjectError{Key: key("ns", name)}))
		}
		next.set = edit.finish()
		next.steps++
		r.store.store(&next)
	}
	inBubble(t, func(t *testing.T, r *rig) {
		r.set(t, "b", "11")
		l := listen(t, r.store, nil)
		synctest.Wait()
		l.heard = nil
		hold(r, "a", "b")
		l.said()
		r.set(t, "c", "12")
		l.said("Added c 12")
		hold(r, "b") // a is gone
		l.said("Deleted a 1, final state unknown")
		r.reprove()
		l.said("Revoked 1 Stuck", "Init 2", "InitDone 2")
		hold(r)
		l.said("Deleted b 11, final state unknown")
		l.same(r.current.Load())
	})
	inBubble(t, func(t *testing.T, r *rig) {
		l := listen(t, r.store, nil)
		l.said("Init 1", "Added a 1", "InitDone 1")
		hold(r, "a")
		r.set(t, "b", "11")
		l.said("Added b 11")
		next := *r.current.Load()
		next.set.bad = objects[*BadObjectError]{}
		r.store.current.Store(&next) // and not told: the event does that
		r.set(t, "a", "12")
		l.said("Updated a 1 to 12")
	})
}

func TestChangeTypeString(t *testing.T) {
	for c, want := range map[ChangeType]string{
		Init: "Init", Added: "Added", Updated: "Updated", Deleted: "Deleted", InitDone: "InitDone", Revoked: "Revoked",
		0: "Invalid", 7: "Invalid",
	} {
		assert.Equal(t, want, c.String())
	}
}
