// Package token is readiness that can be taken back.
//
// A [Token] is one generation of readiness. It is armed Pending, becomes Ready
// at most once, and ends Revoked, carrying the reason as the cause of its
// context. It never comes back: the [Source] that ends a token arms the next
// one in the same step, under the next generation number.
//
//	Pending ──Ready──▶ Ready ──Revoke──▶ Revoked
//	   └───────────────Revoke──────────────▲
//
// The holder of a Token can look, wait and derive work from it; only the holder
// of the Source can move it. Every move names the token it means, so that a
// late caller cannot act on a newer generation.
//
// # Concurrency
//
//   - All methods may be called from any goroutine, at any time, also after the
//     end.
//   - Before [Source.Revoke] returns, the revoked token's context is cancelled
//     with the cause that was given, and [Source.Current] answers the fresh
//     token.
//   - In the terminology of the Go memory model, a call to [Source.Ready]
//     "synchronizes before" any [Token.State] or [Source.Wait] that reports
//     that token ready; a call to Revoke "synchronizes before" any call that
//     reports that token revoked.
//   - Waiting costs no polling and no goroutine: a waiter is woken by the
//     closing of a channel, and follows re-arming to the token that becomes
//     ready.
//
// The package does not say why a token ends, nor who decides it: that is
// package invalidation.
package token
