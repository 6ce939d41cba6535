// Package watcher keeps a set of objects in step with an API server: it lists,
// watches, resumes and lists again, and tells what it learns to a [Sink].
//
// It is its own state machine over client-go's ListerWatcherWithContext, because
// the cache above it must be told what client-go's Reflector keeps to itself:
// that a request is refused, that a stream ended and resumed, that a list began,
// that a stream is stuck.
// Everything around the protocol is client-go's: typed clients and decoding,
// watch.Interface, API errors, the WatchListClient feature gate.
//
// The life of a set, one file each:
//
//  1. request.go asks the server: a page of a LIST, or a watch.
//  2. stream.go turns each thing that comes back into an observation.
//  3. machine.go is the one step from (state, observation) to (state, effects),
//     and move.go what its arrows do; what an observation means for readiness is
//     decided by package invalidation.
//  4. effects.go carries the effects out, on the Sink and on the server, in the
//     loop of watcher.go.
//
// Beside it, proof.go is the second half of the machine, for proofs of freshness
// and audits, and probe.go makes their requests; alarm.go is the clock of both.
// What all of this comes to is in status.go, progress.go and counts.go.
//
// Initial sets come by WatchList where the server has it, else by pages of a
// LIST; either is a consistent read, so that no replica of the server can answer
// with an old state (C30). A watch that ends is resumed from its last resource
// version; the set is listed again only when the server says that the version
// is gone, when the set is known to be wrong, or when the program asks.
//
// # Concurrency
//
//   - A Sink is called from one goroutine, the one in [Watcher.Run].
//   - [Watcher.Relist], [Watcher.Prove] and [Watcher.Status] may be called from any
//     goroutine, at any time.
//   - Every request is made under a context derived from the one given to Run.
//     When that ends, Run stops the open watch and returns as soon as its
//     requests have; a source that ignores its context is left behind after a
//     second.
//   - Watchers share nothing with each other: no lock, no queue, no goroutine.
package watcher
