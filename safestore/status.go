package safestore

import (
	"slices"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Status is what there is to know about a store, or a group, at one moment, for
// people, health checks and debug pages. It holds no objects.
type Status struct {
	// Name is the store's name.
	Name string
	// State and Generation are the current token's.
	State      token.State
	Generation uint64
	// Revocation is what ended the token before it, or the current one if the
	// store is closed; nil if there was none.
	Revocation *invalidation.Revocation
	// Since is since when it is ready, or since when it is not, through however many
	// generations; zero before Run.
	Since time.Time
	// Transitions are the newest moves of the tokens, oldest first, up to 32 of them.
	Transitions []Transition
	// Revocations is how many tokens were revoked for each reason, whether they had
	// been ready or not; nil if none was.
	Revocations map[invalidation.Reason]uint64

	// The rest is zero for a group.

	// Objects and ResourceVersion describe the last snapshot, current or not.
	Objects         int
	ResourceVersion string
	// Updated is when the server last brought the snapshot forward, and Proven the
	// newest moment as of which it is known to hold everything; zero if there is
	// none.
	Updated, Proven time.Time
	// Damped is until when the next token is kept from being ready because tokens
	// did not last; zero or in the past if it is not.
	Damped time.Time
	// Subscriptions are those whose loops are running, sorted by name.
	Subscriptions []SubscriptionStatus
	// Watch is what the store's watcher is doing.
	Watch watcher.Status
}

// Status returns the store's status. It never waits, for readiness or for the
// server.
func (s *Store[T]) Status() Status {
	s.mu.Lock()
	snapshot, status := s.current.Load(), s.statusLocked()
	status.Damped = s.damping.until
	s.mu.Unlock()
	status.Objects, status.ResourceVersion = snapshot.Len(), snapshot.version
	status.Updated, status.Proven = snapshot.at, snapshot.proof.AsOf
	status.Subscriptions = s.subscriptions.status()
	status.Watch = s.watcher.Status()
	return status
}

// statusLocked is what stores and groups have in common.
func (g *generations) statusLocked() Status {
	t := g.tokens.Current()
	status := Status{
		Name:        g.name,
		State:       t.State(),
		Generation:  t.Generation(),
		Revocation:  g.last.Load(),
		Transitions: g.transitions.all(),
		Revocations: g.transitions.revocations(),
	}
	if since := g.since.Load(); since != nil {
		status.Since = status.since(*since)
	}
	return status
}

// since returns when the state became what it is. notReady is that for a store that
// is not.
func (s Status) since(notReady time.Time) time.Time {
	if s.State != token.Ready {
		return notReady
	}
	for _, move := range slices.Backward(s.Transitions) {
		if move.State == token.Ready {
			return move.At
		}
	}
	return notReady
}
