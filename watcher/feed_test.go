package watcher

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func listedPage(version, next string) observation {
	return observation{kind: pageListed, version: version, next: next, prompt: true}
}

func failedWith(err error) observation { return observation{kind: failed, verb: watchVerb, err: err} }

func TestFeed(t *testing.T) {
	gone := apierrors.NewResourceExpired("gone")
	held := heldAt(watching, "10")
	listingPages := state{feed: feed{phase: listing, next: "token", pageVersion: "10", noWatchList: true}}
	initial := state{feed: feed{phase: streaming}}
	silentStream := observation{kind: timedOut, err: errNoMarker}
	openLate, late := observation{kind: timedOut}, observation{kind: timedOut, err: errSome}
	ended := func(how ending) observation { return observation{kind: streamEnded, end: how} }
	opened, waitedFor := observation{kind: streamOpened}, observation{kind: waited}
	marker := func(version string) observation { return observation{kind: initialEnd, version: version} }
	broken := failedWith(apierrors.NewInternalError(errSome))
	forbidden := apierrors.NewForbidden(configMaps, "", errSome)
	seen := func(o ...observation) []observation { return o }
	again := func(n int, o ...observation) (all []observation) {
		for range n {
			all = append(all, o...)
		}
		return all
	}
	for name, test := range map[string]struct {
		from state
		seen []observation
		want string
	}{
		// Pages (C31).
		"more pages":               {listingPages, seen(listedPage("10", "more")), "listing, ask for a page"},
		"last page":                {listingPages, seen(listedPage("10", "")), "opening a watch, ask for a watch"},
		"page of another version":  {listingPages, seen(listedPage("11", "")), "listing, begin, ask for a page"},
		"token expired":            {listingPages, seen(failedWith(gone)), "listing, begin, ask for a page"},
		"token expired four times": {listingPages, append(again(3, failedWith(gone), listedPage("10", "t")), failedWith(gone)), "waiting to retry, revoke BadData, discard, back off"},
		"first page expired":       {state{feed: feed{phase: listing}}, seen(failedWith(gone)), "waiting to retry, revoke Relist, discard, soon"},

		// A list is ready with its watch, or with a proof.
		"published when the watch opens": {listingPages, seen(listedPage("10", ""), opened), "watching, publish, follow"},
		"pending while it does not":      {listingPages, seen(listedPage("10", ""), openLate), "opening a watch, publish pending, extend, ask for the version"},
		"confirmed when it does":         {listingPages, seen(listedPage("10", ""), openLate, opened), "watching, confirm, follow"},
		"refused before, it waits":       {state{feed: feed{phase: opening, built: true, denied: watchVerb}}, seen(late), "waiting to retry, back off, reconnect"},
		"the built set is kept":          {listingPages, seen(listedPage("10", ""), failedWith(apierrors.NewTooManyRequests("no", 1)), waitedFor), "opening a watch, ask for a watch"},
		"no such watch":                  {listingPages, seen(listedPage("10", ""), failedWith(apierrors.NewInvalid(configMapKind, "", nil))), "waiting to retry, revoke Unsupported, drop, discard, back off"},

		// WatchList (C9).
		"refused":                {initial, seen(failedWith(apierrors.NewBadRequest("no"))), "listing, begin, ask for a page"},
		"server failed over it":  {initial, seen(broken, waitedFor), "listing, begin, ask for a page"},
		"and the set after that": {initial, seen(broken, waitedFor, listedPage("10", ""), opened, observation{kind: relistAsked}), "streaming the initial set, begin, ask for a WatchList"},
		"forbidden":              {initial, seen(failedWith(forbidden)), "waiting to retry, revoke Forbidden, drop, discard, back off"},
		"silent, a LIST works":   {initial, seen(silentStream, listedPage("10", ""), opened, observation{kind: relistAsked}), "listing, begin, ask for a page"},
		"silent, the network is": {initial, seen(silentStream, failedWith(errSome), waitedFor, listedPage("10", ""), opened, observation{kind: relistAsked}), "streaming the initial set, begin, ask for a WatchList"},
		"marker without version": {initial, seen(marker("")), "listing, begin, ask for a page"},
		"marker at version 0":    {initial, seen(marker("0")), "listing, begin, ask for a page"},
		"implausible":            {initial, seen(observation{kind: initialEnd, version: "10", implausible: true}), "watching, publish pending, follow, audit"},

		// The end of a watch, and what it was opened from (C32).
		"in its time":               {held, seen(ended(timely)), "opening a watch, ask for a watch"},
		"cut":                       {held, seen(ended(cut)), "waiting to retry, soon"},
		"cut, then":                 {held, seen(ended(cut), waitedFor, opened), "watching, follow, ask for the version"},
		"abrupt":                    {held, seen(ended(abrupt)), "waiting to retry, soon"},
		"abrupt again":              {held, again(2, ended(abrupt), waitedFor, opened)[:4], "waiting to retry, back off"},
		"empty three times":         {held, again(3, ended(empty), waitedFor, opened)[:7], "waiting to retry, revoke Relist, discard, soon"},
		"empty, event, empty twice": {held, append(append(again(2, ended(empty), waitedFor, opened), observation{kind: changed, version: "11"}), again(2, ended(empty), waitedFor, opened)[:4]...), "waiting to retry, back off"},
		"broken off":                {held, seen(broken, waitedFor), "opening a watch, ask for a watch"},
		"broken off three times":    {held, again(3, broken, waitedFor, opened)[:7], "waiting to retry, revoke Relist, discard, soon"},
		"refused with 400 thrice":   {heldAt(opening, "10"), again(3, failedWith(apierrors.NewBadRequest("no")), waitedFor)[:5], "waiting to retry, revoke Relist, discard, soon"},
		"unavailable for long":      {heldAt(opening, "10"), again(9, failedWith(apierrors.NewServiceUnavailable("no")), waitedFor), "opening a watch, ask for a watch"},
		"410":                       {held, seen(failedWith(gone)), "waiting to retry, revoke Relist, discard, soon"},
		"410, then":                 {held, seen(failedWith(gone), waitedFor), "streaming the initial set, begin, ask for a WatchList"},
		"401":                       {held, seen(failedWith(apierrors.NewUnauthorized("no"))), "waiting to retry, revoke Unauthorized, drop, discard, back off"},
		"404":                       {held, seen(failedWith(apierrors.NewNotFound(configMaps, ""))), "waiting to retry, revoke ResourceGone, drop, discard, back off"},
		"405":                       {held, seen(failedWith(apierrors.NewMethodNotSupported(configMaps, "watch"))), "waiting to retry, revoke Unsupported, drop, discard, back off"},
		"unusable":                  {held, seen(failedWith(&unusable{errSome})), "waiting to retry, revoke BadData, discard, back off"},
		"contradicts a proof":       {held, seen(failedWith(ErrContradicts)), "waiting to retry, revoke Diverged, discard, back off"},
		"relist asked in a pause":   {held, seen(broken, observation{kind: relistAsked}, waitedFor), "streaming the initial set, begin, ask for a WatchList"},
		"no version to resume from": {heldAt(watching, ""), seen(ended(timely)), "streaming the initial set, revoke Relist, begin, ask for a WatchList"},

		// A refusal is asked about again by the verb that it was for.
		"list refused":        {held, seen(observation{kind: proofWanted, by: waiter}, observation{kind: proofFailed, verb: listVerb, err: forbidden}, waitedFor), "listing, begin, ask for a page"},
		"list granted again":  {held, seen(observation{kind: proofWanted, by: waiter}, observation{kind: proofFailed, verb: listVerb, err: forbidden}, waitedFor, listedPage("10", ""), opened, observation{kind: relistAsked}), "streaming the initial set, begin, ask for a WatchList"},
		"watch refused":       {held, seen(failedWith(forbidden), waitedFor), "streaming the initial set, begin, ask for a WatchList"},
		"out of touch, early": {heldAt(waiting, "10"), seen(observation{kind: silent, err: errSome}, observation{kind: proofFailed, verb: listVerb, err: errSome}), "waiting to retry, revoke Stale, rest"},

		// Rewinds (C28).
		"older event":             {held, seen(failedWith(fmt.Errorf("x: %w", ErrOutOfOrder))), "waiting to retry, revoke Rewound, discard, back off"},
		"older set":               {state{feed: feed{phase: streaming}, marks: marks{seen: "10"}}, seen(marker("9")), "streaming the initial set, revoke Rewound, begin, ask for a WatchList"},
		"older set, then":         {state{feed: feed{phase: streaming}, marks: marks{seen: "10"}}, again(2, marker("9")), "watching, publish, follow"},
		"older list":              {state{feed: feed{phase: listing, noWatchList: true}, marks: marks{seen: "10"}}, seen(listedPage("9", "")), "listing, revoke Rewound, begin, ask for a page"},
		"versions do not compare": {state{feed: feed{phase: streaming}, marks: marks{seen: "b"}}, seen(marker("a")), "watching, publish, follow"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := walk(test.from, test.seen...)
			assert.Equal(t, test.want, got)
		})
	}
}

// A version that goes back, as that of a deletion that some servers send as it was last,
// takes nothing back.
func TestMarksOnlyGrow(t *testing.T) {
	v := marks{complete: "10", streamed: "8", seen: "12"}
	v.stream("9")
	assert.Equal(t, marks{complete: "10", streamed: "9", seen: "12"}, v)
	v.stream("3")
	assert.Equal(t, marks{complete: "10", streamed: "9", seen: "12"}, v)
	assert.False(t, v.reach("10"))
	assert.True(t, v.reach("13"))
	assert.Equal(t, marks{complete: "13", streamed: "9", seen: "13"}, v)
	v.stream("etag") // versions that do not compare follow the stream
	assert.Equal(t, "etag", v.complete)
}

// The one place that says what is a sign of life.
func TestSignsOfLife(t *testing.T) {
	resumed := heldAt(opening, "10")
	resumed.feed.timely = true
	for k := range kinds {
		switch k {
		case pageListed, initialAdded, initialEnd, changed, bookmarked:
			assert.True(t, heldAt(watching, "10").alive(observation{kind: k}), "%d", k)
		default:
			assert.False(t, heldAt(opening, "10").alive(observation{kind: k, err: errSome}), "%d", k)
		}
	}
	assert.True(t, resumed.alive(observation{kind: streamOpened}), "a watch that ended in its time, and was resumed")
}
