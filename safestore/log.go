package safestore

import "github.com/kube-safestore/kube-safestore/invalidation"

func (s *Store[T]) logEnd(r *invalidation.Revocation) {
	s.logLocked("Store is not ready", "generation", r.Generation, "reason", string(r.Reason),
		"cause", r.Cause, "resourceVersion", r.ResourceVersion)
}

// logLocked has a line logged when mu is released. It names as its origin the
// caller of the function that called unlock: that is who moved the token.
func (s *Store[T]) logLocked(message string, keysAndValues ...any) {
	const depth = 3 // the function here, unlock, who called it, and its caller
	s.unlogged = append(s.unlogged, func() {
		s.logger().WithCallDepth(depth).Info(message, keysAndValues...)
	})
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
