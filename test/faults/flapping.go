package faults

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// flapping is what must not make dependents start over all the time (C48).
func flapping() Fault {
	var proxy *toxic
	return Fault{
		Name:    "flapping",
		Injects: "The server cannot be reached for two seconds, can for two seconds, and so on.",
		Right:   "The watch resumes whenever it can. Reads fail, for Stale, only if the bound passes without a proof.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck}},
		Prepare: func(_ context.Context, s *Stage) (err error) {
			proxy, err = s.ThroughTCP(s.Cluster.API)
			return err
		},
		Inject: func(ctx context.Context, s *Stage) error {
			return s.Every(ctx, 2*time.Second, func() error {
				proxy.Stop()
				err := Pass(ctx, 2*time.Second)
				if startErr := proxy.Start(); startErr != nil {
					return startErr
				}
				return err
			})
		},
	}
}
