package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Ready returns the check whether all stores, and all stores of the groups, can be
// read now: for a readinessProbe, at /readyz. One that was ready and has not been
// for less than grace does not make it fail; zero is no grace. A store that has just
// joined a group which was ready has the grace as well. There is none for a store
// that was never ready, and for one that is closed.
//
// Time is counted on the monotonic or the wall clock, whichever says more: after a
// machine was suspended, the grace is over.
//
// Ready panics if grace is negative, without stores, if one is nil, and if two have
// the same name.
func Ready(grace time.Duration, stores ...safestore.Readiness) *Check {
	if grace < 0 {
		panic(fmt.Sprintf("health: grace is negative: %v", grace))
	}
	c := newCheck("readyz", stores)
	within := func(s safestore.Status, now time.Time) bool {
		return wasReady(s) && watcher.Age(s.Since, now) < grace
	}
	c.tolerates = func(store, group safestore.Status, now time.Time) bool {
		return !isClosed(store) && (within(store, now) || within(group, now))
	}
	return c
}

// wasReady reports whether it was ever ready, as far as its status remembers: after
// more than thirty refusals there is no grace left anyway.
func wasReady(s safestore.Status) bool {
	return slices.ContainsFunc(s.Transitions, func(t safestore.Transition) bool {
		return t.State == token.Ready || t.WasReady
	})
}

func isClosed(s safestore.Status) bool {
	return s.Revocation != nil && s.Revocation.Reason == invalidation.Closed
}
