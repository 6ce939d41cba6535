package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// work is one worker.
func (c *Controller) work(ctx context.Context, queue queue) error {
	for {
		// Before a key is taken: what waits for readiness waits in the queue.
		if _, err := c.group.WaitReady(ctx); err != nil {
			return err
		}
		key, closed := queue.Get()
		if closed {
			return nil
		}
		c.process(ctx, queue, key)
	}
}

// process works on a key that was taken from the queue, if that can be done now, and
// puts it back if it has to be done again.
func (c *Controller) process(ctx context.Context, queue queue, key types.NamespacedName) {
	defer queue.Done(key) // what is added before is handed out after it
	if ctx.Err() != nil {
		return // a queue that is shut down hands out what it has
	}
	snapshot, err := c.group.Snapshot()
	if err != nil {
		queue.Add(key)
		return
	}
	work, release := snapshot.Token().Tie(ctx)
	defer release()
	log := klog.FromContext(ctx).WithValues("key", key)

	if work.Err() != nil {
		queue.Add(key) // over before it began
		return
	}
	result, err := c.call(klog.NewContext(work, log), Request{Key: key, Snapshot: snapshot})
	switch cut := work.Err() != nil; {
	case isPanic(err) && cut:
		c.counts.cut.Add(1)
		logFailure(log, err)
		queue.Add(key)
	case err != nil && !cut:
		c.counts.failed.Add(1)
		logFailure(log, err)
		queue.AddRateLimited(key)
	case cut:
		// Whatever it says of itself: what it did last may not have been done.
		c.counts.cut.Add(1)
		log.V(2).Info("Reconcile was cut", "cause", context.Cause(work))
		queue.Add(key)
	default:
		c.counts.succeeded.Add(1)
		queue.Forget(key)
		if result.RequeueAfter > 0 {
			queue.AddAfter(key, result.RequeueAfter)
		}
	}
}
