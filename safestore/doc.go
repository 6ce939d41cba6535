// Package safestore is a local copy of a collection of Kubernetes objects, for
// controllers, operators and webhook servers, that knows whether it can be
// trusted: a read either reflects the cluster, or it is an error that says why.
//
//	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
//	go pods.Run(ctx)
//
//	pod, err := pods.Get(ctx, key)    // waits until ready, ctx ends or the store closes
//	snapshot, err := pods.Snapshot()  // does not wait: a consistent view, or ErrNotReady saying why
//
// A store is ready under a token, package token. The first complete list grants
// it. It is revoked, and a fresh one armed, when the store can no longer vouch
// for what it holds: the server's answer and package invalidation say when. Work
// that depends on the store runs under the context of the token, and is
// cancelled with it.
//
// # Rules for callers
//
//   - Objects are shared by all readers. Do not change them; DeepCopy first.
//   - A NotFound error (apierrors.IsNotFound) means that the object does not
//     exist. Every other error of a read is a [*NotReadyError] and says nothing
//     about any object.
//   - Reads that belong together are made on one [Snapshot].
//
// # Concurrency
//
//   - All methods of [Store] and [Snapshot] may be called from any goroutine.
//   - A read that begins after [Store.Revoke], or the revocation itself, has
//     returned never returns data of the revoked generation, and contexts of its
//     token are already over.
//   - A store becomes ready together with a complete set, in one step. Nobody sees
//     a part of a set, or an empty store, as ready.
//   - Between two reads under one token, generations stay the same and resource
//     versions only grow; the second read reflects all that the first did.
//     Between two tokens, resource versions only grow unless the server was
//     rewound, which is the reason of a revocation in between.
//   - A snapshot does not change. Reads on one take no lock; reads on a store
//     take one atomic load more.
//   - In the terminology of the Go memory model, the publication of a set or an
//     event "synchronizes before" every read that reflects it.
//   - When the context of [Store.Run] ends, blocked readers return at once, and
//     when Run returns no goroutine of the store is left.
//
// # What is not promised
//
// Without further settings a ready store follows its watch: it is as old as the
// server's watch is late. A watch that is silent because it is stuck is not yet
// told from a quiet one.
package safestore
