package safestore

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// This file is the only place where the token moves and the current snapshot is
// replaced. The orders that readers rely on:
//
//   - To become ready: the snapshot is stored, then its token is made ready. A
//     reader that finds the token ready finds the whole set. In the other order
//     a woken reader could find the set before it.
//   - To revoke: the token ends, then data is replaced or dropped. A reader
//     checks the token that is in the snapshot it has loaded, so that from the
//     moment the token is over no snapshot under it is handed out, whichever is
//     loaded.
//   - To drop data: the current snapshot is replaced by one that never is ready
//     and says why, then the token ends. No snapshot without a set has a token
//     that could become ready: a reader could have loaded it before, and ask it
//     after.
//   - To do both without a gap: a fresh token that is ready is stored with the
//     set, then the old one ends. At no moment is there nothing to read.
//   - Groups move with their members, before anybody else hears of it: when a
//     member is over, so is the group.
//   - Hooks hear of it last, by when readers and contexts know.

// publish makes a complete set the current one, and grants the token that was
// named when the set was begun. If that token was revoked meanwhile, what was
// listed proves nothing about the one after it: the set is kept, under the
// revoked token, for events to be applied to until the next one is complete.
//
// If the token cannot be granted yet, because the set is older than the bound or
// for damping, publish returns after how long a proof is wanted.
func (s *Store[T]) publish(named *token.Token, set indexedSet[T], version string, proof watcher.Proof) (wait time.Duration) {
	s.mu.Lock()
	defer s.unlock()
	next := *s.current.Load()
	next.token, next.set, next.version, next.complete = named, set, version, true
	next.steps += 2
	next.at, next.proof = time.Now(), proof
	if named.State() == token.Ready { // a policy kept it through the relist
		if s.barrier.Empty() {
			s.succeedLocked(named, &next)
			return 0
		}
		// Somebody must act between the two.
		named = s.revokeLocked(named, invalidation.Decision{Revoke: invalidation.Relist}, nil)
		next.token = named
	}
	s.store(&next)
	if named != s.tokens.Current() {
		return 0
	}
	return s.grantLocked(named)
}

// prove takes note of a proof of the current set, and grants the current token if
// that is all it needed. It returns what publish does.
func (s *Store[T]) prove(proof watcher.Proof) (wait time.Duration) {
	s.mu.Lock()
	defer s.unlock()
	next := *s.current.Load()
	next.proof = proof
	current := s.tokens.Current()
	grant := s.unproven != nil && s.unproven == current && next.complete
	if grant {
		next.token = current
	}
	s.store(&next)
	if !grant {
		return 0
	}
	return s.grantLocked(current)
}

// grantLocked makes the current token ready, or says how long that must wait. The
// current snapshot is stored under the token already.
func (s *Store[T]) grantLocked(t *token.Token) (wait time.Duration) {
	snapshot, now := s.current.Load(), time.Now()
	s.unproven = t
	if wait := max(s.damping.wait(now), s.barrier.Remaining()); wait > 0 {
		return wait
	}
	if !s.fresh(snapshot) {
		return time.Nanosecond // a proof, at once
	}
	s.unproven = nil
	if s.tokens.Ready(t) {
		s.followers.tell()
		s.noteReadyLocked(t, snapshot)
		s.damping.ready(now)
		s.hooks.Ready(t)
		s.progress.send()
		s.logLocked("Store is ready", "generation", t.Generation(), "objects", snapshot.Len(),
			"resourceVersion", snapshot.version)
	}
	return 0
}

// succeedLocked replaces a ready token and its set by the next ones in one step.
func (s *Store[T]) succeedLocked(old *token.Token, next *Snapshot[T]) {
	r := s.revocation(old, invalidation.Relist, nil)
	s.explainLocked(old, r)
	fresh, ok := s.tokens.Succeed(old, r, func(fresh *token.Token) {
		next.token = fresh
		s.store(next)
	})
	if !ok {
		s.store(next) // revoked since it was looked at: kept for events, like any other
		return
	}
	s.followers.tell()
	s.transitions.add(revoked(r, true))
	s.noteReadyLocked(fresh, next)
	s.damping.ready(time.Now())
	s.hooks.Revoked(r)
	s.hooks.Ready(fresh)
	s.logLocked("Store was listed again without a gap", "generation", fresh.Generation(), "objects", next.Len(),
		"resourceVersion", next.version)
}

// advance replaces the objects and the version of the current snapshot, under
// the token that it has.
func (s *Store[T]) advance(set indexedSet[T], version string) {
	next := *s.current.Load()
	if set.objects != next.set.objects || set.bad != next.set.bad {
		next.steps++
	}
	next.set, next.version, next.at = set, version, time.Now()
	s.store(&next)
}

// drop forgets the objects, for Stale as well (guarantee 11).
func (s *Store[T]) drop(why *invalidation.Revocation) {
	next := s.noSet()
	next.dropped, next.steps = why, s.current.Load().steps
	s.mutations.replace(next.set.objects)
	s.store(next)
}

// noSet is the snapshot before there is a set.
func (s *Store[T]) noSet() *Snapshot[T] {
	return &Snapshot[T]{token: never, resource: resourceOf[T](), scope: s.scope, indexes: s.indexes}
}

// never is the token of snapshots without a set: it has ended before it began.
var never = func() *token.Token {
	source := token.NewSource(context.Background())
	source.Close(errNoSet)
	return source.Current()
}()

// edit returns a draft that starts from a set.
func (s *Store[T]) edit(set indexedSet[T]) *draft[T] { return set.edit(s.indexes, s.limits) }

// store makes a snapshot the current one. Snapshots are only ever stored by the
// goroutine of Run, which needs no lock for that.
func (s *Store[T]) store(next *Snapshot[T]) {
	s.current.Store(next)
	s.progress.send()
}

// revoke ends the named token and returns the one that follows. It reports false
// if the named one is not current any more.
func (s *Store[T]) revoke(named *token.Token, d invalidation.Decision, cause error) (fresh *token.Token, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	if named != s.tokens.Current() || named.State() == token.Revoked {
		return nil, false
	}
	return s.revokeLocked(named, d, cause), true
}

// revokeLocked ends the current token. If the decision leaves the set as it is, a
// proof is enough for the next one to be ready.
func (s *Store[T]) revokeLocked(current *token.Token, d invalidation.Decision, cause error) *token.Token {
	r := s.revocation(current, d.Revoke, cause)
	if d.Drop {
		s.drop(r) // so that whoever hears of the end finds nothing, and the reason
	}
	s.explainLocked(current, r)
	provable := d.Recovery != invalidation.ListAll
	wasUnproven := s.unproven == current
	s.unproven = nil
	fresh, _ := s.tokens.Revoke(current, r)
	s.followers.tell()
	if provable && (current.WasReady() || wasUnproven) {
		s.unproven = fresh
	}
	s.tellLocked(current, r)
	return fresh
}

// revokeStale ends the token of a snapshot that a reader has found to be older
// than the bound, unless a newer one is there by now: the process may have been
// stopped, and no timer has run yet (C7).
func (s *Store[T]) revokeStale(snapshot *Snapshot[T]) {
	s.mu.Lock()
	if s.current.Load() == snapshot && snapshot.token == s.tokens.Current() && snapshot.token.State() == token.Ready {
		cause := &staleError{bound: s.bound, age: snapshot.Age()}
		s.revokeLocked(snapshot.token, invalidation.Decision{Revoke: invalidation.Stale}, cause)
	}
	s.unlock()
	s.watcher.Prove()
}

// close ends the current token for good.
func (s *Store[T]) close(cause error) {
	s.mu.Lock()
	defer s.unlock()
	current := s.tokens.Current()
	if current.State() == token.Revoked {
		return // closed before
	}
	r := s.revocation(current, invalidation.Closed, cause)
	s.explainLocked(current, r)
	s.tokens.Close(r)
	s.followers.tell()
	close(s.closed)
	s.tellLocked(current, r)
}

// revocation makes the end of a token.
func (s *Store[T]) revocation(t *token.Token, reason invalidation.Reason, cause error) *invalidation.Revocation {
	return &invalidation.Revocation{
		Generation:      t.Generation(),
		Reason:          reason,
		Cause:           cause,
		Since:           time.Now(),
		ResourceVersion: s.current.Load().version,
	}
}

// explainLocked puts a revocation where readers that are woken by the end of the
// token find it.
func (s *Store[T]) explainLocked(t *token.Token, r *invalidation.Revocation) {
	if t.WasReady() {
		s.since.Store(&r.Since)
	}
	s.last.Store(r)
	if isVoid(r.Reason) {
		s.lastVoid.Store(r)
	}
}

func (s *Store[T]) noteReadyLocked(t *token.Token, snapshot *Snapshot[T]) {
	s.transitions.add(Transition{
		At: time.Now(), Generation: t.Generation(), State: token.Ready,
		Objects: snapshot.Len(), ResourceVersion: snapshot.version,
	})
}

func (s *Store[T]) tellLocked(ended *token.Token, r *invalidation.Revocation) {
	s.transitions.add(revoked(r, ended.WasReady()))
	if ended.WasReady() {
		s.damping.revoked(r.Since)
		s.barrier.Revoked(r)
		s.hooks.Revoked(r)
	}
	s.progress.send()
	s.logLocked("Store is not ready", "generation", r.Generation, "reason", string(r.Reason), "cause", r.Cause,
		"resourceVersion", r.ResourceVersion)
}

// logLocked has a line logged when mu is released.
func (s *Store[T]) logLocked(message string, keysAndValues ...any) {
	s.unlogged = append(s.unlogged, func() { s.logger().Info(message, keysAndValues...) })
}

// unlock releases mu and logs what was done under it. A log that blocks holds up
// nobody who asks for the status.
func (s *Store[T]) unlock() {
	lines := s.unlogged
	s.unlogged = nil
	s.mu.Unlock()
	for _, log := range lines {
		log()
	}
}

// fresh reports whether the newest proof of a snapshot is young enough to read
// it.
func (s *Store[T]) fresh(snapshot *Snapshot[T]) bool {
	return s.bound == 0 || snapshot.Age() <= s.bound
}
