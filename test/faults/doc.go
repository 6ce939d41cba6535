// Package faults is the fault matrix: everything that goes wrong between a cache
// and a cluster, on a real kube-apiserver and etcd, and what SafeStore, a client-go
// informer and a controller-runtime cache say meanwhile, side by side, on the same
// objects, through the same fault.
//
// A [Fault] says what it injects and what is right. A [Runner] runs faults. For
// each, the caches run in processes of their own and are read many times a second,
// while the truth changes ten times a second: it is written to etcd, and read from
// etcd, past all API servers. [Judge] compares what was answered with what was
// true: a [Verdict] is one cell of the matrix.
//
// # What is wrong
//
// An answer is wrong if it is served as good and lacks something that was
// committed longer ago than the bound; if it is older than an answer before it; or
// if what it says was never true. SafeStore has promised the bound. Its peers
// promise none: for them the same bound is a yardstick, chosen to be generous.
package faults
