package safestore

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// This file is the only place where the current snapshot is replaced, and where it
// is decided when the store's token moves. What that move consists of, and in which
// order it is made known, is in generations.go. The orders that readers rely on here:
//
//   - To become ready: the snapshot is stored, then its token is made ready. A
//     reader that finds the token ready finds the whole set. In the other order
//     a woken reader could find the set before it.
//   - To revoke and keep the data: the token ends, then the set may be replaced. A
//     reader checks the token that is in the snapshot it has loaded, so that from
//     the moment the token is over no snapshot under it is handed out, whichever
//     is loaded.
//   - To revoke and drop the data: the current snapshot is replaced by one that
//     never is ready and says why, then the token ends, so that whoever hears of
//     the end finds nothing.
//   - No snapshot without a set has a token that could become ready: a reader could
//     have loaded it before, and ask it after.
//   - To replace both without a gap: a fresh token that is ready is stored with the
//     set, then the old one ends. At no moment is there nothing to read.

// publish makes a complete set the current one, and grants the token that was
// named when the set was begun. If that token was revoked meanwhile, what was
// listed proves nothing about the one after it: the set is kept, under the
// revoked token, for events to be applied to until the next one is complete.
//
// If the token cannot be granted yet, because the set is older than the bound or
// for damping, publish returns after how long a proof is wanted. If it is not to be
// granted, it waits for the next proof.
func (s *Store[T]) publish(
	named *token.Token, set indexedSet[T], version string, proof watcher.Proof, grant bool,
) (wait time.Duration) {
	s.mu.Lock()
	defer s.unlock()
	next := *s.current.Load()
	next.token, next.set, next.version, next.complete = named, set, version, true
	next.steps += 2
	next.at, next.proof = time.Now(), proof
	if named.State() == token.Ready { // a policy kept it through the relist
		if grant && s.succeedLocked(named, &next) {
			return 0
		}
		// Somebody must act between the two, or the new one is not believed yet.
		named = s.revokeLocked(named, invalidation.Decision{Revoke: invalidation.Relist}, nil)
		next.token = named
	}
	s.store(&next)
	if named != s.tokens.Current() {
		return 0
	}
	if !grant {
		s.unproven = named
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
	if proof.Number >= next.proof.Number {
		next.proof = proof
	}
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
	if s.grant(t, contentsOf(snapshot)) {
		s.damping.ready(now)
		s.logLocked("Store is ready", "generation", t.Generation(), "objects", snapshot.Len(),
			"resourceVersion", snapshot.version)
	}
	return 0
}

// succeedLocked replaces a ready token and its set by the next ones in one step. It
// reports false, and does nothing, if somebody must act between the two.
func (s *Store[T]) succeedLocked(old *token.Token, next *Snapshot[T]) bool {
	r := s.revocation(old, invalidation.Relist, nil)
	ok := s.succeed(old, r, contentsOf(next), func(fresh *token.Token) {
		next.token = fresh
		s.store(next)
	})
	if ok {
		s.damping.ready(time.Now())
		s.logLocked("Store was listed again without a gap", "generation", next.token.Generation(),
			"objects", next.Len(), "resourceVersion", next.version)
	}
	return ok
}

// contentsOf is what a transition to Ready says about the snapshot.
func contentsOf[T Object](s *Snapshot[T]) Transition {
	return Transition{Objects: s.Len(), ResourceVersion: s.version}
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
func (s *Store[T]) revoke(
	named *token.Token, d invalidation.Decision, cause error,
) (fresh *token.Token, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	if named != s.tokens.Current() || named.State() == token.Revoked {
		return nil, false
	}
	return s.revokeLocked(named, d, cause), true
}

// revokeLocked ends the current token. If the decision leaves the set as it is, a
// proof is enough for the next one to be ready.
func (s *Store[T]) revokeLocked(
	current *token.Token, d invalidation.Decision, cause error,
) (fresh *token.Token) {
	r := s.revocation(current, d.Revoke, cause)
	if isVoid(r.Reason) {
		s.lastVoid.Store(r) // before those who look for it are woken
	}
	var drop func()
	if d.Drop {
		drop = func() { s.drop(r) }
	}
	provable := d.Recovery != invalidation.ListAll && (current.WasReady() || s.unproven == current)
	s.unproven = nil
	fresh = s.generations.revoke(current, r, drop)
	if provable {
		s.unproven = fresh
	}
	if current.WasReady() {
		s.damping.revoked(r.Since)
	}
	s.logEnd(r)
	return fresh
}

// revokeStale ends the token of a snapshot that a reader has found to be older
// than the bound, unless a newer one is there by now: the process may have been
// stopped, and no timer has run yet (C7).
func (s *Store[T]) revokeStale(snapshot *Snapshot[T]) {
	s.mu.Lock()
	t := snapshot.token
	if s.current.Load() == snapshot && t == s.tokens.Current() && t.State() == token.Ready {
		cause := &staleError{bound: s.bound, age: snapshot.Age()}
		s.revokeLocked(t, invalidation.Decision{Revoke: invalidation.Stale}, cause)
	}
	s.unlock()
	s.watcher.Prove()
}

// close ends the current token for good.
func (s *Store[T]) close(cause error) {
	s.mu.Lock()
	defer s.unlock()
	if s.isClosed() {
		return
	}
	s.unproven = nil // no proof makes a closed store ready
	r := s.revocation(s.tokens.Current(), invalidation.Closed, cause)
	s.generations.close(r)
	s.logEnd(r)
}

// revocation makes the end of a token.
func (s *Store[T]) revocation(
	t *token.Token, reason invalidation.Reason, cause error,
) *invalidation.Revocation {
	r := s.generations.revocation(t, reason, cause)
	r.ResourceVersion = s.current.Load().version
	return r
}

// fresh reports whether the newest proof of a snapshot is young enough to read
// it.
func (s *Store[T]) fresh(snapshot *Snapshot[T]) bool {
	return s.bound == 0 || snapshot.Age() <= s.bound
}
