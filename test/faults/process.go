package faults

import (
	"context"
	"syscall"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// processStopped is a suspended machine (C7).
func processStopped() Fault {
	return Fault{
		Name:    "process-stopped",
		Injects: "The processes of the caches are stopped, and continued after the window, as a suspended machine is.",
		Right:   "The first read after that fails, for Stale, before any timer has run.",
		Least:   15 * time.Second,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck}, Told: true},
		Inject: func(ctx context.Context, s *Stage) error {
			if err := s.signal(syscall.SIGSTOP); err != nil {
				return err
			}
			held := s.Hold(ctx)
			if err := s.signal(syscall.SIGCONT); err != nil {
				return err
			}
			return held
		},
	}
}

// signal sends a signal to all caches.
func (s *Stage) signal(sig syscall.Signal) error {
	for _, p := range s.Processes {
		if err := p.Signal(sig); err != nil {
			return err
		}
	}
	return nil
}
