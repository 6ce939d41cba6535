package safestore

import (
	"maps"
	"slices"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// keptTransitions is how many of the newest transitions a status has.
const keptTransitions = 32

// Transition is one move of a token, as a status remembers it.
type Transition struct {
	// At is when, on the wall clock.
	At time.Time
	// Generation is the token's number, and State what it became: Ready or Revoked.
	Generation uint64
	State      token.State
	// WasReady says, of a revocation, that the token had been ready before.
	WasReady bool
	// Reason and Cause are why it was revoked; empty and nil if it became ready.
	Reason invalidation.Reason
	Cause  error
	// Objects and ResourceVersion are the store's at that moment; zero for a group.
	Objects         int
	ResourceVersion string
}

// transitions are the newest ones, oldest first, and how many revocations there
// were. Whoever owns them guards them with the lock under which the token is moved.
// The zero value has none.
type transitions struct {
	kept  []Transition // appended to and replaced, but never changed
	ended map[invalidation.Reason]uint64
}

func (all *transitions) add(t Transition) {
	if t.State == token.Revoked {
		if all.ended == nil {
			all.ended = map[invalidation.Reason]uint64{}
		}
		all.ended[t.Reason]++
	}
	if len(all.kept) == keptTransitions {
		all.kept = slices.Clone(all.kept[1:])
	}
	all.kept = append(all.kept, t)
}

// all returns what is kept. What is returned is not changed by later moves.
func (all *transitions) all() []Transition { return slices.Clip(all.kept) }

// revocations returns how many there were of each reason; nil if there were none.
func (all *transitions) revocations() map[invalidation.Reason]uint64 { return maps.Clone(all.ended) }

// revoked is the transition that a revocation makes.
func revoked(r *invalidation.Revocation, wasReady bool) Transition {
	return Transition{
		At: r.Since, Generation: r.Generation, State: token.Revoked, WasReady: wasReady,
		Reason: r.Reason, Cause: r.Cause, ResourceVersion: r.ResourceVersion,
	}
}
