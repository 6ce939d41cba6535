package safestore

import (
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// Revoke ends a token because the program knows that the store must not be
// trusted, for [invalidation.Requested] and the given cause, which may be nil.
// When it returns, reads fail and the token's context is over; the objects are
// listed anew, and the next token becomes ready with them. As with all
// revocations, many of them in a row make the next tokens wait.
//
// Naming the token keeps a late caller from ending a newer one: Revoke reports
// whether t was the current token. It is false for nil, for a token that is
// already over, and for a closed store.
func (s *Store[T]) Revoke(t *token.Token, cause error) bool {
	d := invalidation.Default(invalidation.Observation{Seen: invalidation.RevokeCalled, Err: cause})
	s.mu.Lock()
	current := t != nil && t == s.tokens.Current() && t.State() != token.Revoked
	if current {
		s.revokeLocked(t, d, cause)
	}
	s.unlock()
	if current {
		s.watcher.Relist()
	}
	return current
}
