package faults

import (
	"context"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// apiRestart is routine, and a 410 to every version from before (C32).
func apiRestart() Fault {
	return Fault{
		Name:    "api-server-restart",
		Injects: "The API server is stopped in good order, and started again at once. What it stores changes meanwhile.",
		Right:   "The watch resumes, or the set is listed again if the server has forgotten the version. Reads fail for Stale only if that takes longer than the bound.",
		Own:     true,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Relist, invalidation.Stale, invalidation.Stuck}},
		Prepare: direct,
		Inject: func(ctx context.Context, s *Stage) error {
			return s.Cluster.API.Restart(context.WithoutCancel(ctx))
		},
	}
}

// direct lets the caches reach the API server with nothing in between.
func direct(_ context.Context, s *Stage) error {
	s.Config = s.Cluster.Config()
	return nil
}
