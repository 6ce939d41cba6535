package faults

import (
	"context"
	"errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// stalledStream is the watch is dead, and all signs of life are there (C2, C4).
func stalledStream() Fault {
	return Fault{
		Name:    "stalled-stream",
		Injects: "A proxy that answers pings stops delivering on open watches, and keeps them open. New watches, and all other requests, pass.",
		Right:   "Within the bound reads fail, for Stuck or Stale. A new watch is opened, and nothing is listed.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stuck, invalidation.Stale}},
		Inject: func(ctx context.Context, s *Stage) error {
			if s.Gateway.Stall() == 0 {
				return errors.New("no watch is open")
			}
			err := s.Hold(ctx)
			s.Gateway.Release()
			return err
		},
	}
}
