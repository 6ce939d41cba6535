package watcher

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

var errSome = errors.New("some trouble on the way")

var configMaps = schema.GroupResource{Resource: "configmaps"}

var configMapKind = schema.GroupKind{Kind: "ConfigMap"}

// tell says what a step led to, in words: the phase, then the effects.
func tell(s state, e effects) string {
	words := []string{s.feed.phase.String()}
	say := func(ok bool, word string) {
		if ok && word != "" {
			words = append(words, word)
		}
	}
	say(e.revoke.Revoke != "", "revoke "+string(e.revoke.Revoke))
	say(e.revoke.Drop, "drop")
	say(true, [...]string{"", "publish", "publish pending", "confirm"}[e.publish])
	say(e.begin, "begin")
	say(e.discard, "discard")
	say(true, [...]string{"", "ask for a page", "ask for a WatchList", "ask for a watch"}[e.request])
	say(true, [...]string{"", "soon", "back off"}[e.pause])
	say(e.advance, "advance")
	say(e.extend, "extend")
	say(e.follow, "follow")
	say(e.heard, "heard")
	say(true, [...]string{"", "ask for the version", "peek"}[e.ask])
	say(true, [...]string{"", "audit", "audit on", "compare"}[e.askAudit])
	say(e.moved, "moved")
	say(e.proven, "proven")
	say(e.rest != nil, "rest")
	say(e.reconnect, "reconnect")
	return strings.Join(words, ", ")
}

// heldAt is a state with a published set, in a phase.
func heldAt(p phase, version string) state {
	s := state{feed: feed{phase: p, held: true}}
	s.marks = marks{complete: version, streamed: version, seen: version}
	return s
}

// walk makes several steps and tells what the last one led to.
func walk(s state, observations ...observation) (state, string) {
	var e effects
	for _, o := range observations {
		s, e = s.step(o, invalidation.Default)
	}
	return s, tell(s, e)
}

// TestEveryPair goes through every phase and every kind of observation. What is not in the
// table is impossible, which is BadData and a pause: never a panic, and never a set that
// may be wrong.
func TestEveryPair(t *testing.T) {
	const impossible = "waiting to retry, revoke BadData, discard, back off"
	const retry = "waiting to retry, discard, back off"
	const relist = "streaming the initial set, begin, ask for a WatchList"
	proofs := func(p phase) map[kind]string {
		return map[kind]string{
			proofWanted: p.String() + ", ask for the version",
			silent:      p.String() + ", ask for the version",
			auditWanted: p.String() + ", audit",
			// The rest is about a proof or an audit that has been given up.
			proofListed: p.String(), proofMissed: p.String(), proofCaught: p.String(),
			proofReached: p.String(), proofEnded: p.String(), proofLate: p.String(),
			proofFailed: p.String(), peekFailed: p.String(), proofDue: p.String(),
			auditListed: p.String(), auditCompared: p.String(), auditFailed: p.String(), auditLate: p.String(),
		}
	}
	for p, own := range map[phase]map[kind]string{
		listing: {
			pageListed: "opening a watch, ask for a watch", failed: retry,
			timedOut: retry + ", reconnect", relistAsked: relist,
			silent: "listing, revoke Stale", stale: "listing, revoke Stale",
		},
		streaming: {
			streamOpened: "streaming the initial set, extend",
			initialAdded: "streaming the initial set, extend",
			bookmarked:   "streaming the initial set, extend",
			initialEnd:   "watching, publish, follow",
			streamEnded:  "listing, begin, ask for a page",
			timedOut:     "listing, begin, ask for a page, reconnect",
			failed:       retry, relistAsked: relist,
			silent: "streaming the initial set, revoke Stale", stale: "streaming the initial set, revoke Stale",
		},
		opening: {
			streamOpened: "watching, follow", failed: retry, relistAsked: relist,
			timedOut: "opening a watch, extend", stale: "opening a watch, revoke Stale",
		},
		watching: {
			changed: "watching, advance", bookmarked: "watching", relistAsked: relist,
			streamEnded: "waiting to retry, soon", timedOut: "opening a watch, ask for a watch, reconnect",
			failed: retry, stale: "watching, revoke Stale, ask for the version",
		},
		waiting: {
			waited: "opening a watch, ask for a watch", relistAsked: "waiting to retry",
			stale: "waiting to retry, revoke Stale",
		},
	} {
		want := map[kind]string{}
		if p >= opening {
			want = proofs(p)
		}
		for k, words := range own {
			want[k] = words
		}
		for k := range kinds {
			t.Run(fmt.Sprintf("%v/%d", p, k), func(t *testing.T) {
				before := heldAt(p, "10")
				before.feed.held = p >= opening
				after, e := before.step(observation{kind: k, version: "11", by: waiter, err: errSome}, invalidation.Default)
				wanted, ok := want[k]
				switch {
				case ok:
				case k >= proofWanted:
					t.Skip("a proof needs a set")
				default:
					wanted = impossible
					if p == waiting {
						wanted = strings.TrimSuffix(impossible, ", back off") // the pause stands
					}
					assert.ErrorContains(t, e.cause, "bug: ")
				}
				if k == proofDue {
					wanted += ", ask for the version"
				}
				assert.Equal(t, wanted, tell(after, e))
				if e.publish != notPublished {
					assert.True(t, after.feed.held)
				}
			})
		}
	}
}

// No observation about a proof or an audit does anything while there is no set to prove.
func TestNoProofWithoutASet(t *testing.T) {
	for _, p := range []phase{listing, streaming} {
		for k := proofWanted; k < kinds; k++ {
			s := state{feed: feed{phase: p}}
			after, e := s.step(observation{kind: k, by: waiter, content: Agrees}, invalidation.Default)
			assert.Equal(t, noQuestion, e.ask, "%v/%d", p, k)
			assert.Equal(t, p, after.feed.phase, "%v/%d", p, k)
		}
	}
}

// A policy has its say in every step that may end readiness, and no less than
// what is safe is done.
func TestPolicyDecides(t *testing.T) {
	held := heldAt(watching, "10")
	var asked []invalidation.Sighting
	strict := invalidation.Policy(func(o invalidation.Observation) invalidation.Decision {
		asked = append(asked, o.Seen)
		assert.Equal(t, "10", o.ResourceVersion)
		return invalidation.Decision{Revoke: "Mine", Recovery: invalidation.ListAll}
	})
	s, e := held.step(observation{kind: streamEnded, end: timely}, strict.Decide)
	assert.Equal(t, "streaming the initial set, revoke Mine, begin, ask for a WatchList", tell(s, e))
	s, e = held.step(observation{kind: failed, err: errSome}, strict.Decide)
	assert.Equal(t, "waiting to retry, revoke Mine, discard, back off", tell(s, e))
	assert.False(t, s.feed.held)
	s, e = held.step(observation{kind: stale, err: errSome}, strict.Decide)
	assert.Equal(t, "waiting to retry, revoke Mine, discard, back off", tell(s, e))
	assert.False(t, s.feed.held, "it wants a list, and gets one")
	assert.Equal(t, []invalidation.Sighting{
		invalidation.StreamEnded, invalidation.StreamBroken, invalidation.OutOfTouch,
	}, asked)
}
