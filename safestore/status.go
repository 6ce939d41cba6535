package safestore

import (
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Status is what there is to know about a store at one moment, for people,
// health checks and debug pages. It holds no objects.
type Status struct {
	// Name is the store's name.
	Name string
	// State and Generation are the current token's.
	State      token.State
	Generation uint64
	// Revocation is what ended the token before it, or the current one if the
	// store is closed; nil if there was none.
	Revocation *invalidation.Revocation
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
	// Watch is what the store's watcher is doing.
	Watch watcher.Status
}

// Status returns the store's status. It never waits, for readiness or for the
// server.
func (s *Store[T]) Status() Status {
	snapshot, t := s.current.Load(), s.tokens.Current()
	s.mu.Lock()
	damped := s.damping.until
	s.mu.Unlock()
	return Status{
		Name:            s.name,
		State:           t.State(),
		Generation:      t.Generation(),
		Revocation:      s.last.Load(),
		Objects:         snapshot.Len(),
		ResourceVersion: snapshot.version,
		Updated:         snapshot.at,
		Proven:          snapshot.proof.AsOf,
		Damped:          damped,
		Watch:           s.watcher.Status(),
	}
}
