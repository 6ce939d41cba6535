// Package invalidation says why readiness ends: the reasons, the error that
// carries one, the policy that decides it, and the hooks that hear of it.
//
// [Default] is the decision table of SafeStore, as one function: from what the
// watcher saw to what happens to the token and how the store recovers. A
// program may replace it, and be stricter or, where the data may still be right,
// more patient; [Policy.Decide] keeps it from breaking a promise made to
// readers.
//
// # Concurrency
//
//   - Policies are pure functions: no lock is held when they run, and they run
//     one at a time for one store.
//   - [Revocation] values are never changed after they were made; they may be
//     read from any goroutine.
//   - [Hooks] may be used from any goroutine, also from inside a hook. For each
//     generation a hook hears Ready at most once and then, if it was ready,
//     Revoked exactly once; see [Hooks] for what is promised about order.
//
// The package does not talk to a server and does not end tokens by itself: the
// store does, with what this package decides.
package invalidation
