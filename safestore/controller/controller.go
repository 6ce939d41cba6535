package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// Request is what a reconcile function is asked to work on.
type Request struct {
	// Key names what is to be brought in order. It is what a [Source] made of a
	// change, and need not be the key of an object.
	Key types.NamespacedName
	// Snapshot is of all stores of the controller, taken for this request. Its token
	// is the one that the work is fenced by. Read it with [safestore.Store.In].
	Snapshot *safestore.JointSnapshot
}

// Result is how work went that did not fail.
type Result struct {
	// RequeueAfter is when the key is to be worked on again if nothing happens
	// before. Zero or less: when something happens.
	RequeueAfter time.Duration
}

// Options are the settings of a controller. The zero value is good to use.
type Options struct {
	// Workers is how many keys are worked on at the same time. Zero stands for one.
	Workers int
	// RateLimiter says how long a key waits after its work has failed. It serves one
	// controller. Nil stands for client-go's
	// workqueue.DefaultTypedControllerRateLimiter: from 5ms, doubled up to 1000s for
	// each key, and 10 a second for all together after the first 100.
	RateLimiter workqueue.TypedRateLimiter[types.NamespacedName]
	// MetricsProvider gets the metrics of the queue, which has the controller's name.
	// Nil stands for the one that was given to workqueue.SetProvider, if any.
	MetricsProvider workqueue.MetricsProvider
	// RecoverPanics makes a panic of the reconcile function a failure of that work,
	// which is logged with its stack, and tried again. By default it ends the
	// program, as panics do (C38).
	RecoverPanics bool
}

// Controller runs a reconcile function on keys, while its stores are ready. Make
// one with [New] and start it with [Controller.Run]; all its methods may be called
// from any goroutine.
type Controller struct {
	name      string
	reconcile func(context.Context, Request) (Result, error)
	opts      Options
	sources   []Source
	group     *safestore.Group

	started atomic.Bool
	queue   atomic.Pointer[queue] // nil before Run
	counts  counts
}

type queue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// New returns a controller, not yet running, that works while the stores of all
// sources are ready. The name is for logs, status and metrics. The stores hold on to
// the controller until its Run has returned.
//
// New fails without a name, a reconcile function, or a source of changes; if Workers
// is negative; for a store that is nil; if two different stores have the same name; and
// for options of a source that cannot be subscribed to.
func New(name string, reconcile func(context.Context, Request) (Result, error), opts Options, sources ...Source) (*Controller, error) {
	switch {
	case name == "":
		return nil, errors.New("controller: New without a name")
	case reconcile == nil:
		return nil, fmt.Errorf("controller %s: there is no reconcile function", name)
	case opts.Workers < 0:
		return nil, fmt.Errorf("controller %s: Workers is %d", name, opts.Workers)
	}
	if opts.RateLimiter == nil {
		opts.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()
	}
	stores, err := storesOf(sources)
	if err != nil {
		return nil, fmt.Errorf("controller %s: %w", name, err)
	}
	group, err := safestore.NewGroup(name, stores...)
	if err != nil {
		return nil, fmt.Errorf("controller %s: %w", name, err)
	}
	for _, source := range sources {
		if source.check == nil {
			continue
		}
		if err := source.check(name); err != nil {
			group.Close()
			return nil, fmt.Errorf("controller %s: %w", name, err)
		}
	}
	return &Controller{name: name, reconcile: reconcile, opts: opts, sources: sources, group: group}, nil
}

// Name returns the controller's name.
func (c *Controller) Name() string { return c.name }

// Readiness returns the readiness of all stores together, for health checks and to
// say why no work is done. It is closed when Run returns.
func (c *Controller) Readiness() safestore.Readiness { return c.group }

// Run works until ctx ends, and returns nil when all calls of the reconcile function
// have returned: their contexts end with ctx, and nobody else waits for them. Work
// that was cut by that, and keys that are queued, are dropped.
//
// Run fails when a store is closed before ctx has ended, and, after a short while,
// if Run is not called for a store. A second call fails with
// [safestore.ErrRunTwice], also after the first has returned.
//
// Run has the shape of an errgroup function, and of controller-runtime's
// manager.RunnableFunc.
func (c *Controller) Run(ctx context.Context) error {
	if !c.started.CompareAndSwap(false, true) {
		return fmt.Errorf("controller %s: %w", c.name, safestore.ErrRunTwice)
	}
	defer c.group.Close()
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(c.opts.RateLimiter,
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: c.name, MetricsProvider: c.opts.MetricsProvider})
	c.queue.Store(&queue)

	run, fail := context.WithCancelCause(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("controller", c.name)))
	defer fail(nil)
	defer queue.ShutDown()
	defer context.AfterFunc(run, queue.ShutDown)()

	var all sync.WaitGroup
	start := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				fail(fmt.Errorf("controller %s: %w", c.name, err)) // the first one counts
			}
		})
	}
	for _, source := range c.sources {
		if source.feed != nil {
			start(func() error { return source.feed(run, c.name, queue.Add) })
		}
	}
	for range max(c.opts.Workers, 1) {
		start(func() error { return c.work(run, queue) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(run)
}
