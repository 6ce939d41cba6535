package health

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
)

// Live returns the check whether the program should be left alone: for a
// livenessProbe, at /livez. It fails when a store has not been ready for longer than
// limit, and up to a tenth more, for a reason that a restart could cure: the table
// is in the package comment (C57). A store that is not running, because the program
// waits to be leader, does not make it fail.
//
// Time is counted on the monotonic clock alone: for how long a machine was suspended
// says nothing about its programs.
//
// Live panics if limit is not positive, without stores, if one is nil, and if two
// have the same name.
func Live(limit time.Duration, stores ...safestore.Readiness) *Check {
	if limit <= 0 {
		panic(fmt.Sprintf("health: limit is not positive: %v", limit))
	}
	c := newCheck("livez", stores)
	limit += rand.N(limit/10 + 1)
	excused := excuses{limit: limit, seen: map[[2]string]time.Time{}}
	c.tolerates = func(store, group safestore.Status, now time.Time) bool {
		since := store.Since
		if last := excused.last(store, group, now); last.After(since) {
			since = last
		}
		return now.Sub(since) <= limit
	}
	return c
}

// excuses are when a store was last seen not to need a restart. A status does not
// tell for how long a server that had refused has been unreachable instead.
type excuses struct {
	limit time.Duration // what is older makes no difference
	mu    sync.Mutex
	seen  map[[2]string]time.Time // by group and store
}

// last returns when the store last had an excuse, now if it has one.
func (e *excuses) last(store, group safestore.Status, now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := [2]string{group.Name, store.Name}
	if hasExcuse(store) {
		e.seen[name] = now
	}
	maps.DeleteFunc(e.seen, func(_ [2]string, t time.Time) bool { return now.Sub(t) > e.limit })
	return e.seen[name]
}

// hasExcuse reports whether a restart would be in vain.
func hasExcuse(s safestore.Status) bool {
	switch r := s.Revocation; {
	case s.Watch.Phase == "":
		return true // not running, or a group
	case r == nil:
		return false
	case curable(r.Reason):
		return false
	default:
		// The newest reason stays while nothing else is news: the last attempt says
		// whether it still is what is in the way.
		return r.Reason == invalidation.Closed || s.Watch.LastError == nil || s.Watch.LastReason == r.Reason
	}
}

// curable reports whether a restart could help against a reason. The reasons why
// are in the package comment.
func curable(reason invalidation.Reason) bool {
	switch reason {
	case invalidation.Forbidden, invalidation.ResourceGone, invalidation.Unsupported, invalidation.TooLarge, invalidation.BadData, invalidation.Closed:
		return false
	default:
		return true
	}
}
