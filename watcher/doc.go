// Package watcher keeps a set of objects in step with an API server: it lists,
// watches, resumes and lists again, proves that the set is fresh, and tells what it
// learns to a [Sink].
//
// It is its own state machine over client-go's ListerWatcherWithContext, because
// the cache above it must be told what client-go's Reflector keeps to itself:
// that a request is refused, that a stream ended and resumed, that a list began,
// that a stream is stuck.
// Everything around the protocol is client-go's: typed clients and decoding,
// watch.Interface, API errors, the WatchListClient feature gate.
//
// # The machine
//
// What happens is an observation (observation.go). The machine is one pure step from
// a state and an observation to a state and effects (machine.go), in two halves:
//
//   - The feed lists and watches. Its state and arrows are in feed.go, what the arrows do
//     in feed_moves.go. What an observation means for readiness is decided by package
//     invalidation.
//   - The proof shows that the set holds everything. Its state and arrows are in
//     proof.go; to whom a proof is owed is in owed.go; audit.go is the part of it that
//     lists everything.
//
// marks.go has the three resource versions that both go by, and life.go the one function
// that says what is a sign of life. docs/proof.md in the repository draws the proof and
// argues why it is right. An explicit-state search over the step function is among the
// tests.
//
// # The driver
//
// Around the machine is the goroutine of [Watcher.Run] (watcher.go):
//
//  1. request.go asks the server for a page of a LIST, or a watch, over an exchange
//     (exchange.go), which follows the request through the client (trace.go).
//  2. stream.go turns each thing that comes back into an observation; question.go,
//     peek.go and auditing.go do so for the requests of a proof.
//  3. effects.go carries out what a step wants done, on the Sink and on the server. An
//     event reaches readers in [Sink.Apply], called by stream.go; a whole set reaches
//     them in [Sink.Publish], called by effects.go.
//  4. alarm.go is the clock of both halves.
//
// What all of this comes to is in status.go, progress.go and counts.go.
//
// Initial sets come by WatchList where the server has it, else by pages of a
// LIST; either is a consistent read, so that no replica of the server can answer
// with an old state. A watch that ends is resumed from the version up to which the set
// is complete; the set is listed again only when the server says that the version
// is gone, or refuses it again and again, when the set is known to be wrong, or when the
// program asks.
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
