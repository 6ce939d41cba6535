package faults

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// etcdCompacted is the other 410 (C32, C36).
func etcdCompacted() Fault {
	var proxy *toxic
	return Fault{
		Name:    "etcd-compacted",
		Injects: "While the caches are cut off for three seconds, things change and etcd forgets its history. The API server has no watch cache: it answers 410.",
		Right:   "Reads fail for Relist while the set is listed again, once; for Stale before, if the bound is short.",
		Own:     true,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Relist, invalidation.Stale, invalidation.Stuck}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) error {
			uncached, err := s.Cluster.StartReplica(ctx, "--watch-cache=false")
			if err != nil {
				return err
			}
			proxy, err = s.ThroughTCP(uncached)
			return err
		},
		Inject: func(ctx context.Context, s *Stage) error {
			proxy.Stop()
			if err := Pass(ctx, 3*time.Second); err != nil {
				return err
			}
			if _, err := s.Cluster.Etcd.Compact(ctx); err != nil {
				return err
			}
			return proxy.Start()
		},
	}
}
