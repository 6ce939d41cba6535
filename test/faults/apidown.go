package faults

import (
	"context"
	"errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// apiDown is what must not be read as "nothing exists" (C13).
func apiDown() Fault {
	return Fault{
		Name:    "api-server-down",
		Injects: "The API server is killed, and started again after the window. What it stores changes meanwhile.",
		Right:   "Within the bound reads fail, for Stale. Afterwards the watch resumes, or the set is listed again if the server has forgotten the version.",
		Own:     true,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Relist, invalidation.Stuck}, Told: true},
		Prepare: direct,
		Inject: func(ctx context.Context, s *Stage) error {
			if err := s.Cluster.API.Kill(); err != nil {
				return err
			}
			err := s.Hold(ctx)
			return errors.Join(err, s.Cluster.API.Start(context.WithoutCancel(ctx)))
		},
	}
}
