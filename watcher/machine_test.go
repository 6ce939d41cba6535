package watcher

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// tell says what a step led to, in words: the phase, then the effects.
func tell(s state, e effects) string {
	words := []string{s.phase.String()}
	say := func(ok bool, word string) {
		if ok && word != "" {
			words = append(words, word)
		}
	}
	say(e.revoke.Revoke != "", "revoke "+string(e.revoke.Revoke))
	say(e.revoke.Drop, "drop")
	say(e.publish, "publish")
	say(e.begin, "begin")
	say(true, map[request]string{askPage: "ask for a page", askInitial: "ask for a WatchList", askWatch: "ask for a watch"}[e.request])
	say(e.pause, "pause")
	say(e.advance, "advance")
	say(e.extend, "extend")
	say(e.follow, "follow")
	say(e.heard, "heard")
	say(true, map[probe]string{askLatest: "ask for the version", askPeek: "peek"}[e.probe])
	say(e.moved, "moved")
	say(e.proven, "proven")
	say(e.unproven, "unproven")
	say(e.reconnect, "reconnect")
	return strings.Join(words, ", ")
}

var errSome = errors.New("some trouble on the way")

// kinds is how many kinds of observations there are.
const kinds = proofLate + 1

// TestEveryPair goes through every phase and observation. What is not in the
// table is impossible, which is BadData and a pause: never a panic, and never a
// set that may be wrong.
func TestEveryPair(t *testing.T) {
	const impossible = "waiting to retry, revoke BadData, pause"
	retry := "waiting to retry, pause"
	for p, want := range map[phase]map[kind]string{
		listing: {
			pageListed:  "opening a watch, ask for a watch",
			failed:      retry,
			timedOut:    retry,
			relistAsked: "streaming the initial set, begin, ask for a WatchList",
			silent:      "listing, revoke Stale",
			stale:       "listing, revoke Stale",
		},
		streaming: {
			streamOpened: "streaming the initial set, extend",
			initialAdded: "streaming the initial set, extend",
			bookmarked:   "streaming the initial set, extend",
			initialEnd:   "watching, publish, follow",
			streamEnded:  "listing, begin, ask for a page",
			timedOut:     "listing, begin, ask for a page",
			failed:       retry,
			relistAsked:  "streaming the initial set, begin, ask for a WatchList",
			silent:       "streaming the initial set, revoke Stale",
			stale:        "streaming the initial set, revoke Stale",
		},
		opening: {
			streamOpened: "watching, follow",
			failed:       retry,
			timedOut:     retry,
			relistAsked:  "streaming the initial set, begin, ask for a WatchList",
			silent:       "opening a watch, revoke Stale",
			stale:        "opening a watch, revoke Stale",
			proofWanted:  "opening a watch, ask for the version",
			proofFailed:  "opening a watch, unproven",
			proofLate:    "opening a watch, unproven",
		},
		watching: {
			changed:     "watching, advance",
			bookmarked:  "watching, advance",
			streamEnded: "opening a watch, ask for a watch",
			timedOut:    "opening a watch, ask for a watch",
			failed:      retry,
			relistAsked: "streaming the initial set, begin, ask for a WatchList",
			silent:      "watching, ask for the version",
			stale:       "watching, revoke Stale, ask for the version",
			proofWanted: "watching, ask for the version",
			proofFailed: "watching, unproven",
			proofLate:   "watching, unproven",
		},
		waiting: {
			waited:      "opening a watch, ask for a watch",
			relistAsked: "waiting to retry",
			silent:      "waiting to retry, revoke Stale",
			stale:       "waiting to retry, revoke Stale",
		},
	} {
		for k := range kinds {
			t.Run(fmt.Sprintf("%v/%d", p, k), func(t *testing.T) {
				before := state{phase: p, version: "10", floor: "10", held: p >= opening}
				after, e := before.step(observation{kind: k, version: "11", err: errSome}, invalidation.Default)
				wanted, ok := want[k]
				switch {
				case ok:
				case k >= proofWanted:
					wanted = p.String() // nothing
				default:
					wanted = impossible
					assert.ErrorContains(t, e.cause, "bug: ")
				}
				assert.Equal(t, wanted, tell(after, e))
				assert.Equal(t, state{phase: p, version: "10", floor: "10", held: p >= opening}, before, "a step changes nothing but what it returns")
				if e.publish {
					assert.True(t, after.held)
				}
				if after.phase == waiting && k != silent && k != stale && k != relistAsked && k < proofWanted {
					assert.True(t, e.pause, "whoever waits has begun to")
				}
			})
		}
	}
}

// walk makes several steps and tells what the last one led to.
func walk(s state, observations ...observation) (state, string) {
	var e effects
	for _, o := range observations {
		s, e = s.step(o, invalidation.Default)
	}
	return s, tell(s, e)
}

func listedPage(version, next string) observation {
	return observation{kind: pageListed, version: version, next: next}
}

func failedWith(err error) observation { return observation{kind: failed, err: err} }

var configMaps = schema.GroupResource{Resource: "configmaps"}

func TestMoves(t *testing.T) {
	gone := apierrors.NewResourceExpired("gone")
	held := state{phase: watching, version: "10", floor: "10", held: true}
	stillListing := state{phase: listing, next: "token", pageVersion: "10", noWatchList: true}
	brief := observation{kind: streamEnded, brief: true}
	opened, waitedFor := observation{kind: streamOpened}, observation{kind: waited}
	broken := failedWith(apierrors.NewInternalError(errSome))
	again := func(o ...observation) []observation { return o }
	for name, test := range map[string]struct {
		from state
		seen []observation
		want string
	}{
		// Pages (C31).
		"more pages":                     {stillListing, again(listedPage("10", "more")), "listing, ask for a page"},
		"last page":                      {stillListing, again(listedPage("10", "")), "opening a watch, ask for a watch"},
		"page of another version":        {stillListing, again(listedPage("11", "")), "listing, begin, ask for a page"},
		"token expired":                  {stillListing, again(failedWith(gone)), "listing, begin, ask for a page"},
		"token expired four times":       {stillListing, again(failedWith(gone), listedPage("10", "t"), failedWith(gone), listedPage("10", "t"), failedWith(gone), listedPage("10", "t"), failedWith(gone)), "waiting to retry, revoke BadData, pause"},
		"first page expired":             {state{phase: listing}, again(failedWith(gone)), "waiting to retry, revoke Relist, pause"},
		"published when the watch opens": {stillListing, again(listedPage("10", ""), opened), "watching, publish, follow"},
		"published without the watch":    {stillListing, again(listedPage("10", ""), observation{kind: timedOut}), "opening a watch, publish"},
		"and then it opens":              {stillListing, again(listedPage("10", ""), observation{kind: timedOut}, opened), "watching, follow"},
		"and then it does not":           {stillListing, again(listedPage("10", ""), observation{kind: timedOut}, observation{kind: timedOut, err: errSome}), "waiting to retry, pause"},

		// WatchList (C9).
		"refused":                {state{phase: streaming}, again(failedWith(apierrors.NewBadRequest("no"))), "listing, begin, ask for a page"},
		"server failed over it":  {state{phase: streaming}, again(broken, waitedFor), "listing, begin, ask for a page"},
		"and the set after that": {state{phase: streaming}, again(broken, waitedFor, listedPage("10", ""), opened, observation{kind: relistAsked}), "streaming the initial set, begin, ask for a WatchList"},
		"forbidden":              {state{phase: streaming}, again(failedWith(apierrors.NewForbidden(configMaps, "", errSome))), "waiting to retry, revoke Forbidden, drop, pause"},
		"fallback is for good":   {state{phase: streaming}, again(observation{kind: timedOut, err: errSome}, listedPage("10", ""), opened, observation{kind: relistAsked}), "listing, begin, ask for a page"},

		// The end of a watch, and what it was opened from (C32).
		"brief":                      {held, again(brief), "waiting to retry, pause"},
		"brief three times":          {held, again(brief, waitedFor, opened, brief, waitedFor, opened, brief), "waiting to retry, revoke Relist, pause"},
		"brief, long, brief, brief":  {held, again(brief, waitedFor, opened, observation{kind: streamEnded}, opened, brief, waitedFor, opened, brief), "waiting to retry, pause"},
		"brief, event, brief, brief": {held, again(brief, waitedFor, opened, observation{kind: changed, version: "11"}, brief, waitedFor, opened, brief), "waiting to retry, pause"},
		"broken off":                 {held, again(broken, waitedFor), "opening a watch, ask for a watch"},
		"broken off three times":     {held, again(broken, waitedFor, opened, broken, waitedFor, opened, broken), "waiting to retry, revoke Relist, pause"},
		"410":                        {held, again(failedWith(gone)), "waiting to retry, revoke Relist, pause"},
		"410, then":                  {held, again(failedWith(gone), waitedFor), "streaming the initial set, begin, ask for a WatchList"},
		"401":                        {held, again(failedWith(apierrors.NewUnauthorized("no"))), "waiting to retry, revoke Unauthorized, drop, pause"},
		"404":                        {held, again(failedWith(apierrors.NewNotFound(configMaps, ""))), "waiting to retry, revoke ResourceGone, drop, pause"},
		"405":                        {held, again(failedWith(apierrors.NewMethodNotSupported(configMaps, "watch"))), "waiting to retry, revoke ResourceGone, drop, pause"},
		"429":                        {held, again(failedWith(apierrors.NewTooManyRequests("no", 0)), waitedFor), "opening a watch, ask for a watch"},
		"unusable":                   {held, again(failedWith(&unusable{errSome})), "waiting to retry, revoke BadData, pause"},
		"relist asked while waiting": {held, again(broken, observation{kind: relistAsked}, waitedFor), "streaming the initial set, begin, ask for a WatchList"},
		"no version to resume from":  {state{phase: watching, held: true}, again(observation{kind: streamEnded}), "streaming the initial set, revoke Relist, begin, ask for a WatchList"},

		// Rewinds (C28).
		"older event":             {held, again(failedWith(fmt.Errorf("x: %w", ErrOutOfOrder))), "waiting to retry, revoke Rewound, pause"},
		"older set":               {state{phase: streaming, floor: "10"}, again(observation{kind: initialEnd, version: "9"}), "streaming the initial set, revoke Rewound, begin, ask for a WatchList"},
		"older set, then":         {state{phase: streaming, floor: "10"}, again(observation{kind: initialEnd, version: "9"}, observation{kind: initialEnd, version: "9"}), "watching, publish, follow"},
		"older list":              {state{phase: listing, floor: "10", noWatchList: true}, again(listedPage("9", "")), "listing, revoke Rewound, begin, ask for a page"},
		"versions do not compare": {state{phase: streaming, floor: "b"}, again(observation{kind: initialEnd, version: "a"}), "watching, publish, follow"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := walk(test.from, test.seen...)
			assert.Equal(t, test.want, got)
		})
	}
}

// A proof, step by step.
func TestProofs(t *testing.T) {
	held := state{phase: watching, version: "10", floor: "10", held: true}
	wanted, silence := observation{kind: proofWanted}, observation{kind: silent, err: errSome}
	late := observation{kind: proofLate, err: errSome}
	at := func(k kind, version string) observation { return observation{kind: k, version: version} }
	steps := func(o ...observation) []observation { return o }
	for name, test := range map[string]struct {
		seen []observation
		want string
	}{
		"asked for":                        {steps(wanted), "watching, ask for the version"},
		"there already":                    {steps(wanted, at(proofListed, "10")), "watching, proven"},
		"further than that":                {steps(wanted, at(changed, "12"), at(proofListed, "11")), "watching, proven"},
		"not there yet":                    {steps(wanted, at(proofListed, "11")), "watching"},
		"the stream comes there":           {steps(wanted, at(proofListed, "11"), at(changed, "11")), "watching, advance, proven"},
		"by a bookmark":                    {steps(wanted, at(proofListed, "11"), at(bookmarked, "11")), "watching, advance, proven"},
		"it does not":                      {steps(wanted, at(proofListed, "11"), late), "watching, peek"},
		"nothing was missed":               {steps(wanted, at(proofListed, "11"), late, at(proofReached, "11")), "watching, moved, proven"},
		"the bookmark is not far enough":   {steps(wanted, at(proofListed, "12"), late, at(proofReached, "11")), "watching"},
		"without bookmarks":                {steps(wanted, at(proofListed, "11"), late, at(proofEnded, "")), "watching, heard"},
		"something was missed":             {steps(wanted, at(proofListed, "11"), late, at(proofMissed, "11")), "watching"},
		"and came":                         {steps(wanted, at(proofListed, "11"), late, at(proofMissed, "11"), at(changed, "11")), "watching, advance, proven"},
		"and did not":                      {steps(wanted, at(proofListed, "11"), late, at(proofMissed, "11"), late), "waiting to retry, revoke Stuck, pause, reconnect"},
		"the server went back":             {steps(wanted, at(proofListed, "9")), "streaming the initial set, revoke Rewound, begin, ask for a WatchList"},
		"versions do not exist":            {steps(wanted, at(proofListed, "")), "watching, heard"},
		"no answer":                        {steps(wanted, late), "watching, unproven"},
		"no answer, after silence":         {steps(silence, late), "waiting to retry, revoke Stuck, pause, reconnect"},
		"silence while it is under way":    {steps(wanted, silence, late), "waiting to retry, revoke Stuck, pause, reconnect"},
		"trouble of its own (C1)":          {steps(wanted, failedWith(errSome), observation{kind: proofFailed, err: apierrors.NewInternalError(errSome)}), "waiting to retry"},
		"its failure (C1)":                 {steps(wanted, observation{kind: proofFailed, err: apierrors.NewInternalError(errSome)}), "watching, unproven"},
		"its refusal is an answer":         {steps(wanted, observation{kind: proofFailed, err: apierrors.NewForbidden(configMaps, "", errSome)}), "waiting to retry, revoke Forbidden, drop, pause"},
		"asked for again meanwhile":        {steps(wanted, wanted, at(proofListed, "10")), "watching, ask for the version, proven"},
		"the stream ends meanwhile":        {steps(wanted, observation{kind: streamEnded}), "opening a watch, ask for a watch"},
		"wanted before the stream is open": {steps(observation{kind: streamEnded}, wanted, observation{kind: streamOpened}, at(proofListed, "10")), "watching, proven"},
		"a stream after trouble":           {steps(failedWith(errSome), observation{kind: waited}, observation{kind: streamOpened}), "watching, follow, ask for the version"},
	} {
		t.Run(name, func(t *testing.T) {
			s, got := walk(held, test.seen...)
			assert.Equal(t, test.want, got)
			if strings.Contains(got, "proven") && !strings.Contains(got, "unproven") && !strings.Contains(got, "ask") {
				assert.Equal(t, proof{}, s.proof)
				assert.False(t, s.doubt)
			}
		})
	}
}

// A policy has its say in every step that may end readiness, and no less than
// what is safe is done.
func TestPolicyDecides(t *testing.T) {
	held := state{phase: watching, version: "10", floor: "10", held: true}
	var asked []invalidation.Sighting
	strict := invalidation.Policy(func(o invalidation.Observation) invalidation.Decision {
		asked = append(asked, o.Seen)
		assert.Equal(t, "10", o.ResourceVersion)
		return invalidation.Decision{Revoke: "Mine", Recovery: invalidation.ListAll}
	})
	s, e := held.step(observation{kind: streamEnded}, strict.Decide)
	assert.Equal(t, "streaming the initial set, revoke Mine, begin, ask for a WatchList", tell(s, e))
	s, e = held.step(failedWith(errSome), strict.Decide)
	assert.Equal(t, "waiting to retry, revoke Mine, pause", tell(s, e))
	assert.False(t, s.held)
	lax := invalidation.Policy(func(invalidation.Observation) invalidation.Decision { return invalidation.Decision{} })
	s, e = held.step(failedWith(apierrors.NewForbidden(configMaps, "", errSome)), lax.Decide)
	assert.Equal(t, "waiting to retry, revoke Forbidden, drop, pause", tell(s, e))
	assert.False(t, s.held)
	assert.Equal(t, []invalidation.Sighting{invalidation.StreamEnded, invalidation.StreamBroken}, asked)
}
