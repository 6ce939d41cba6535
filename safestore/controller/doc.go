// Package controller runs work on keys: it is told of the changes of one or more
// stores, and works only while all of them can be trusted.
//
//	c, err := controller.New("replicas", reconcile, controller.Options{Workers: 4},
//		controller.For(deployments),
//		controller.Watches(pods, controller.OldAndNew(ownerOf)))
//	err = c.Run(ctx)
//
//	func reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
//		deployments, err := deployments.In(req.Snapshot)
//		...
//
// A change of a store queues the keys that it concerns. Workers take one key after
// the other and call the reconcile function with a snapshot of all stores. A key is
// never worked on twice at the same time, and one that is queued several times
// before its turn is worked on once.
//
// # Fenced work
//
// The stores of a controller form a [safestore.Group]. All work is done under its
// token, which ends with that of any of the stores:
//
//   - While the group is not ready no work begins. Keys wait in the queue.
//   - The snapshot of a request was taken under the token of the work, so that all
//     that is read from it belongs together, and reflects the change that was the
//     reason for it.
//   - The context of the work ends in the same step as the token, with the
//     revocation as its cause. Once a revocation has happened no request to the
//     server can begin under the context of earlier work (C54). It ends as well when
//     the context of [Controller.Run] does, as by the end of a leadership.
//   - A key whose work was cut so is worked on again under the next token, without
//     backoff, and whatever the work returned.
//
// Work begins as soon as the group is ready, also when not all keys of a large set
// have been queued yet: what it reads is always a complete set, and the keys that
// are still to be queued will be (C15). After a revocation only what has changed
// meanwhile is queued, beside the work that was cut; unchanged objects are not.
//
// What a reconcile function has to do itself: pass its context to all that it calls,
// and write with preconditions, by sending the resourceVersion that it has read or
// by server-side apply. A request that is under way when the token ends may still
// be carried out by the server. A function that has to wait for long, or reads more
// than its snapshot, reads the stores themselves: their reads fail with the context.
//
// # Leader election
//
// Give Run the context of the leadership. New makes the controller of one term: a
// program that may lead again makes another one for it. When a leadership has ended
// wait for Run to return before letting go of the lock, as the example does.
// manager.RunnableFunc(c.Run) is such a controller for a controller-runtime manager.
//
// # Concurrency
//
//   - All methods may be called from any goroutine.
//   - The reconcile function is called by as many goroutines as there are workers.
//     What one call for a key did happens before the next call for it.
//   - Functions that map changes to keys are called by one goroutine for each source.
//   - When Run returns, all calls have returned. End controllers before the stores
//     that they work on, or together with them.
package controller
