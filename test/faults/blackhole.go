package faults

import (
	"context"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// blackHole is what keeps a client waiting for a quarter of an hour (C2, C4, C6).
func blackHole() Fault {
	var proxy *toxic
	return Fault{
		Name:    "tcp-black-hole",
		Injects: "Nothing that is sent arrives any more, on old and new connections, in both directions, and nobody says so.",
		Right:   "Within the bound reads fail, for Stale or Stuck. Once the network is back, the watch resumes and a proof is made.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stuck, invalidation.Stale}, Told: true},
		Prepare: func(_ context.Context, s *Stage) (err error) {
			proxy, err = s.ThroughTCP(s.Cluster.API)
			return err
		},
		Inject: func(ctx context.Context, s *Stage) error {
			for _, direction := range []string{"upstream", "downstream"} {
				if err := proxy.add("timeout", direction, attributes{"timeout": 0}); err != nil {
					return err
				}
			}
			err := s.Hold(ctx)
			proxy.clean(ctx)
			return err
		},
	}
}
