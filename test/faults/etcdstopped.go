package faults

import (
	"context"
	"errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// etcdStopped is what makes health checks fail while watches are well (C1).
func etcdStopped() Fault {
	return Fault{
		Name:    "etcd-stopped",
		Injects: "etcd is killed, and started again after the window. The API server stays, and keeps its watches open.",
		Right:   "Nothing can change, and nothing can be proven: within the bound reads fail, for Stale or Stuck. No set is listed again but on a 410.",
		Own:     true,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck, invalidation.Relist}, Told: true},
		Prepare: direct,
		Inject: func(ctx context.Context, s *Stage) error {
			if err := s.Cluster.Etcd.Kill(); err != nil {
				return err
			}
			err := s.Hold(ctx)
			return errors.Join(err, s.Cluster.Etcd.Start(context.WithoutCancel(ctx)))
		},
	}
}
