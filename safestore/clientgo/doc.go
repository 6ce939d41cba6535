// Package clientgo lets code that was written for client-go's caches run on a
// store: generated listers, and whoever waits for caches to be in sync.
//
//	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
//	go pods.Run(ctx)
//
//	lister := corelisters.NewPodLister(clientgo.Indexer(ctx, pods))
//	synced := clientgo.HasSynced(pods)
//
// New code reads the store itself, whose reads all have an error and a context.
//
// # What a lister says of a store that is not ready
//
// A Get fails at once with a [*safestore.NotReadyError], which is never a
// NotFound. A List cannot fail for it: client-go's listers call methods that have
// no error, also after one that has. So it waits until the store is ready, and
// never returns less than all there is. When it cannot wait any longer, because
// the context that was given to [Indexer] ends or the store is closed, it panics
// with the NotReadyError. Nothing else is left but to lie: an empty list is what
// makes programs delete things. (When a List of one namespace has to wait,
// client-go logs "can not retrieve list of objects using index", and why.)
//
// [Recover] turns that panic into an error where the lister is used:
//
//	func (c *controller) sync(key string) (err error) {
//		defer clientgo.Recover(&err)
//		pods, err := c.pods.List(labels.Everything())
//
// A program that ends its workers first, and the store's context after they have
// returned, has no panics at its end.
//
// # Concurrency
//
// Everything here may be used from any goroutine, and starts none. Each call of
// an indexer's method reads one snapshot; two calls may read two.
package clientgo
