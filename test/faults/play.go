package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kube-safestore/kube-safestore/test/cluster"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
)

const (
	lead  = 2 * time.Second        // in which all is well, before the fault
	calm  = 2 * time.Second        // in which all has to be well, after it
	start = 60 * time.Second       // for the caches to be ready at first
	look  = 100 * time.Millisecond // how often it is looked
)

// play runs a fault in a cluster, from the empty namespace to the verdicts.
func (r *Runner) play(ctx context.Context, c *cluster.Cluster, result *Result) (err error) {
	f, o := result.Fault, r.options
	s, err := newStage(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.Window, s.Brief = max(o.Window, f.Least), o.Brief
	s.Log = func(format string, args ...any) { r.say(f, format, args...) }
	if f.Prepare != nil {
		if err := f.Prepare(ctx, s); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	if s.Config == nil {
		if err := s.ThroughGateway(c.Config()); err != nil {
			return err
		}
	}
	if err := s.tell(ctx); err != nil {
		return err
	}
	result.Start = time.Now()
	played := r.act(ctx, s, f)
	left, ended := s.stop()
	result.Begun, result.Over = s.begun, s.over
	result.Truth, result.Samples = s.Truth.Moments(), map[system.Kind][]system.Sample{}
	for i, p := range s.Processes {
		samples := p.Samples()
		if s.begun.IsZero() {
			continue
		}
		v := Judge(result.Truth, samples, o.Bound, s.begun, s.over)
		v.Fault, v.System, v.Left, v.Waits = f.Name, p.Kind, left[i], f.Expect.Meanwhile
		acted := Judge(result.Truth, p.Actions(), o.Bound, s.begun, s.over)
		v.Actions, v.WrongActions = acted.Reads, acted.Wrong
		if ended[i] != nil {
			v.Died = ended[i].Error()
		}
		if p.Kind == system.SafeStore {
			v.Failures = f.failures(v)
		}
		result.Samples[p.Kind] = samples
		result.Verdicts = append(result.Verdicts, v)
	}
	return played
}

// tell begins to write the truth, and to take it down.
func (s *Stage) tell(ctx context.Context) (err error) {
	s.Writer = truth.NewWriter(s.Etcd, s.Prefix, s.Encode)
	if err := s.Writer.Begin(ctx); err != nil {
		return err
	}
	if s.Truth, err = truth.Follow(ctx, s.Etcd, s.Prefix); err != nil {
		return err
	}
	s.Defer(s.Truth.Close)
	writing, stop := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() { s.Writer.Run(writing) })
	s.Defer(func() error {
		stop()
		writer.Wait()
		return nil
	})
	return nil
}

// act starts the caches, injects the fault, and waits until all are right again,
// or had long enough.
func (r *Runner) act(ctx context.Context, s *Stage, f Fault) error {
	kinds := []system.Kind{system.SafeStore}
	if r.options.Peers {
		kinds = system.Kinds
	}
	begin := func() error {
		for _, kind := range kinds {
			p, err := system.Start(ctx, s.setup(kind, f, r.options))
			if err != nil {
				return err
			}
			s.Processes = append(s.Processes, p)
		}
		return nil
	}
	if !f.AtStart {
		if err := begin(); err != nil {
			return err
		}
		if !s.await(ctx, start, r.options.Bound) {
			return fmt.Errorf("the caches do not become ready: %s", s.lastWords())
		}
		if err := Pass(ctx, lead); err != nil {
			return err
		}
	}
	r.say(f, "begins")
	s.begun = time.Now()
	injected := make(chan error, 1)
	go func() { injected <- f.Inject(ctx, s) }()
	if f.AtStart {
		if err := begin(); err != nil {
			return errors.Join(err, <-injected)
		}
	}
	err := <-injected
	s.over = time.Now()
	if err != nil {
		return fmt.Errorf("inject: %w", err)
	}
	r.say(f, "is over")
	if !s.await(ctx, f.heals(), r.options.Bound) {
		r.say(f, "not all are right again")
	}
	return Pass(ctx, calm)
}

// await waits until the newest answers of all caches that are alive are good and
// right, and reports whether they came to be.
func (s *Stage) await(ctx context.Context, limit, bound time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		right := true
		j := newJudge(s.Truth.Moments(), min(bound, time.Second))
		for _, p := range s.Processes {
			last, ok := p.Last()
			_, wrong := j.judge(last)
			fresh := time.Since(last.Time()) < max(2*time.Second, bound)
			j.last = -1
			right = right && (!p.Alive() || ok && last.Good && wrong == "" && fresh)
		}
		if right {
			return true
		}
		if Pass(ctx, look) != nil {
			return false
		}
	}
	return false
}

// lastWords returns what the caches said last, with the errors they began with.
func (s *Stage) lastWords() string {
	words := ""
	for _, p := range s.Processes {
		for _, sample := range p.Samples() {
			if sample.Error != "" {
				words += fmt.Sprintf("%s: %s; ", p.Kind, sample.Error)
				break
			}
		}
		last, _ := p.Last()
		words += fmt.Sprintf("%s at last: %+v; ", p.Kind, last)
	}
	return words + fmt.Sprintf("the truth is %v", s.Truth.Now())
}

// stop stops the caches, and returns what they leave.
func (s *Stage) stop() ([]system.Left, []error) {
	left, errs := make([]system.Left, len(s.Processes)), make([]error, len(s.Processes))
	var stopping sync.WaitGroup
	for i, p := range s.Processes {
		stopping.Go(func() { left[i], errs[i] = p.Stop() })
	}
	stopping.Wait()
	return left, errs
}
