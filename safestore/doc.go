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
// # What there is
//
//   - [Store] holds one collection; [Namespaces] several namespaces of one, as one
//     store, and [StoreSet] those of several clusters. [Collection] is what Store and
//     Namespaces have in common.
//   - [Snapshot] is a view that does not change; [JointSnapshot] one of several
//     stores.
//   - [Group] is readiness over several stores, and [Readiness] what it has in common
//     with a store: health checks, debug pages and controllers take that.
//   - [Subscription] tells what has changed.
//   - [Shared] is a store that ends with the last of its users.
//   - [Status] and [Samples] are for people and for metrics.
//
// Below this package: controller runs work on keys, health answers probes, debug is a
// page for people, clientgo serves code that was written for client-go's caches, and
// prometheus, a module of its own, is a collector.
//
// # Rules for callers
//
//   - Objects are shared by all readers. Do not change them: read copies with
//     [Store.GetDeepCopy] and the option [DeepCopy].
//   - A NotFound error (apierrors.IsNotFound) means that the object does not
//     exist. A [*NotReadyError] says nothing about any object. The others are those
//     of what was asked, as an index that there is none of, and of stores that are
//     lenient: [*BadObjectError], [ErrPartial].
//   - Reads that belong together are made on one [Snapshot]; of several stores, on
//     the snapshot of a [Group].
//   - To follow what happens to the objects, range over the changes of a
//     [Subscription]: they are computed from what the subscriber got last, so that
//     nothing is lost, invented or queued.
//
// # Concurrency
//
//   - All methods of [Store] and [Snapshot] may be called from any goroutine.
//   - A read that begins after [Store.Revoke], or the revocation itself, has
//     returned never returns data of the revoked generation, and contexts of its
//     token are already over.
//   - A store becomes ready together with a complete set, in one step. Nobody sees
//     a part of a set, or an empty store, as ready.
//   - Tokens that do not last make the next ones wait, up to 30 seconds, so that
//     what depends on the store does not start over all the time.
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
// # How fresh a read is
//
// A ready store follows its watch. That the watch lives and brings everything is
// shown by proofs of freshness, small requests to the server beside it. By
// default one is made when the watch has been silent for longer than it should
// be, and when it resumes after trouble, so that a stuck one is found in about 80
// seconds. With [Options].MaxStaleness proofs are made as often as the bound
// needs, and a read that succeeds at time t includes everything committed at t
// minus the bound: that is checked in the read itself, on the monotonic and on
// the wall clock.
//
// # What is not promised
//
//   - The bound is as good as the server's consistent reads: one that answers
//     them from an old state cannot be caught.
//   - A server that was restored from a backup, and has overtaken the store's
//     version before the next proof, cannot be told by its versions. An audit
//     finds it.
//   - Where there are no resource versions nothing can be proven, and a store
//     with a bound does not stay ready. Its status says so.
package safestore
