// Package bench measures SafeStore beside the caches and the data structures that
// one would use in its place: client-go's indexers and listers,
// controller-runtime's cache, cilium/statedb's part, benbjohnson/immutable, a Go
// map under a lock, and sync.Map. All hold the same pods, are asked for the same
// keys in the same random order, and are measured in turns in one process, so that
// their ratios mean something on a machine whose speed does not. What a peer cannot
// do is left out there, not imitated.
//
// A store, an informer and a controller-runtime cache are used as programs use
// them, fed by one list and watch without a network. Structures are used alone, to
// show what the one under SafeStore's snapshots was chosen among: no more than an
// update and a lock or an atomic pointer is around them. They are given their keys
// ready-made, where a lister has to put namespace and name together.
//
// make bench prints the table; go test -bench=. runs the same functions.
package bench
