package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kube-safestore/kube-safestore/test/cluster"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
)

// Options say how faults are run.
type Options struct {
	// Window is how long a fault lasts, and Bound SafeStore's MaxStaleness.
	Window, Bound time.Duration
	// MaxBackoff is SafeStore's longest pause between attempts; zero for its default.
	MaxBackoff time.Duration
	// Peers says that the peers run as well.
	Peers bool
	// Brief says that what is large may be smaller.
	Brief bool
	// Parallel is how many faults run at the same time on the cluster that they
	// share. Besides, one runs that has a cluster of its own.
	Parallel int
	// Progress is told what happens. Nil for nobody.
	Progress io.Writer
}

// Result is what became of a fault.
type Result struct {
	// Fault is what was injected, and Verdicts what is to be said, SafeStore's first.
	Fault    Fault
	Verdicts []Verdict
	// Err is why the fault could not be run as it should.
	Err error

	// What was seen, for pictures: when the caches were started, when the fault began
	// and was over, how old an answer might be, what was true and what was answered.
	Start, Begun, Over time.Time
	Bound              time.Duration
	Truth              []truth.Moment
	Samples            map[system.Kind][]system.Sample
}

// Passed reports whether the fault was run, and SafeStore passes.
func (r Result) Passed() bool {
	return r.Err == nil && len(r.Verdicts) > 0 && len(r.Verdicts[0].Failures) == 0
}

// Runner runs faults. Make one with [NewRunner], and call Close.
type Runner struct {
	options Options
	mu      sync.Mutex // of Progress
	shared  shared
	own     sync.Mutex // held by the fault that has a cluster of its own
	places  chan struct{}
}

// NewRunner returns a runner. It starts clusters when they are needed.
func NewRunner(o Options) *Runner {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return &Runner{options: o, places: make(chan struct{}, max(1, o.Parallel))}
}

// Close stops the shared cluster.
func (r *Runner) Close() error {
	if r.shared.cluster == nil {
		return nil
	}
	return r.shared.cluster.Stop()
}

// shared is the cluster that no fault breaks.
type shared struct {
	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

func (s *shared) start(o cluster.Options) (*cluster.Cluster, error) {
	s.once.Do(func() {
		// It outlives the fault that needs it first.
		s.cluster, s.err = cluster.Start(context.Background(), o)
	})
	return s.cluster, s.err
}

// RunAll runs faults, in parallel where they are independent, and returns their
// results in the same order.
func (r *Runner) RunAll(ctx context.Context, faults []Fault) []Result {
	results := make([]Result, len(faults))
	var running sync.WaitGroup
	for i, f := range faults {
		running.Go(func() { results[i] = r.Run(ctx, f) })
	}
	running.Wait()
	return results
}

// Run runs one fault, when it is its turn.
func (r *Runner) Run(ctx context.Context, f Fault) (result Result) {
	result.Fault, result.Bound = f, r.options.Bound
	if f.Own {
		r.own.Lock()
		defer r.own.Unlock()
	} else {
		r.places <- struct{}{}
		defer func() { <-r.places }()
	}
	if result.Err = context.Cause(ctx); result.Err != nil {
		return result
	}
	var c *cluster.Cluster
	o := cluster.Options{Progress: r.options.Progress}
	if f.Own {
		c, result.Err = cluster.Start(ctx, o)
	} else {
		c, result.Err = r.shared.start(o)
	}
	if result.Err != nil {
		return result
	}
	if f.Own {
		defer func() { result.Err = errors.Join(result.Err, c.Stop()) }()
	}
	result.Err = r.play(ctx, c, &result)
	return result
}

// say tells what happens.
func (r *Runner) say(f Fault, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.options.Progress, "%s  %-24s %s\n", time.Now().Format("15:04:05.0"), f.Name, fmt.Sprintf(format, args...))
}

// ServeIfAsked must be called first by every program that runs faults: see
// package system. It does not return in the processes that it starts.
func ServeIfAsked() { system.ServeIfAsked() }
