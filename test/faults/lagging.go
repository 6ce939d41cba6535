package faults

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/cluster"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
)

// laggingServer is one replica behind the others (C30).
func laggingServer() Fault {
	var way, etcd *proxy.Proxy
	var lagging *cluster.APIServer
	return Fault{
		Name:    "lagging-server",
		Injects: "One of two API servers is cut off from etcd, and goes on answering from what it knew. The caches are sent there, and back after the window.",
		Right:   "Older state is never taken in, and what cannot be proven is said within the bound, for Stale, Stuck or Rewound.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck, invalidation.Rewound, invalidation.Relist}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) (err error) {
			if etcd, err = s.tcpProxy(s.Cluster.Etcd.Endpoint()[len("http://"):]); err != nil {
				return err
			}
			// ConfigMaps only: the rest of that server goes on working.
			if lagging, err = s.Cluster.StartReplica(ctx, "--etcd-servers-overrides=/configmaps#http://"+etcd.Address()); err != nil {
				return err
			}
			s.Defer(lagging.Kill)
			to, err := address(s.Cluster.API)
			if err != nil {
				return err
			}
			if way, err = s.tcpProxy(to); err != nil {
				return err
			}
			s.Config = s.Cluster.Config()
			s.Config.Host = "https://" + way.Address()
			return nil
		},
		Inject: func(ctx context.Context, s *Stage) error {
			etcd.Stall()
			defer etcd.Resume()
			if err := Pass(ctx, 2*time.Second); err != nil {
				return err
			}
			for i, server := range []*cluster.APIServer{lagging, s.Cluster.API} {
				to, err := address(server)
				if err != nil {
					return err
				}
				way.Redirect(to)
				way.Cut()
				if i == 0 {
					if err := s.Hold(ctx); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}
