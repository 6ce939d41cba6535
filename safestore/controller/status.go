package controller

import (
	"sync/atomic"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// Status is what there is to know about a controller at one moment, for people,
// metrics and debug pages.
type Status struct {
	// Readiness is that of all its stores together.
	Readiness safestore.Status
	// Queued is how many keys wait for a worker, or for the stores to be ready. Those
	// that wait for a time, after a failure or for RequeueAfter, are not among them.
	Queued int
	// Running is how many keys are being worked on.
	Running int
	// Succeeded, Failed and Cut are how often work has ended so, since Run was called.
	// Cut is work under a token, or in a Run, that ended before it did.
	Succeeded, Failed, Cut uint64
}

// counts are kept by workers, who wait for nobody to read them.
type counts struct {
	running                atomic.Int64
	succeeded, failed, cut atomic.Uint64
}

// Status returns the controller's status. It never waits for work, nor for a server.
func (c *Controller) Status() Status {
	status := Status{
		Readiness: c.group.Status(),
		Running:   int(c.counts.running.Load()),
		Succeeded: c.counts.succeeded.Load(),
		Failed:    c.counts.failed.Load(),
		Cut:       c.counts.cut.Load(),
	}
	if queue := c.queue.Load(); queue != nil {
		status.Queued = (*queue).Len()
	}
	return status
}
