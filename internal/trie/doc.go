// Package trie is an immutable map with string keys: the structure under
// snapshots. A new version shares all but a few nodes with the one before, so
// that changing one key among many costs about as much as changing one among
// few, and keeping an old version costs only what has changed since.
//
// To read, use a [Map]. To make the next version:
//
//	e := m.Edit()       // copies nothing
//	e.Set("a", x)       // any number of edits, each seen by e alone
//	e.Delete("b")
//	m = e.Map()         // the old m is what it was
//
// Values are stored as they are: what they point to is shared by all versions.
//
// # Concurrency
//
//   - A Map never changes, so all its methods may be called from any goroutine,
//     also while an [Editor] that came from it, or made it, goes on editing.
//   - An Editor is for one goroutine at a time.
//   - The package has no locks, atomics or goroutines. Whoever hands a Map to
//     another goroutine does it in a way that "synchronizes before" its use,
//     such as [sync/atomic.Pointer].
//
// # Layout
//
// The map is a compressed hash-array mapped prefix tree (Steindorfer and Vinju,
// "Optimizing Hash-Array Mapped Tries for Fast and Lean Immutable JVM
// Collections", 2015): nodes of 64 places, with one bitmap for leaves and one
// for children, and a slice for the full places of each.
//
// Tried with 100,000 keys, and left: 32 places (writes up to a quarter faster,
// reads a fifth slower, a seventh more memory) and 16 (slower still to read);
// the hash in each leaf, or leaves behind pointers (more memory, reads no
// faster); a node and its slice in one allocation (reads faster if anything, but
// a leaf slice that versions share would keep alive a whole old node).
package trie
