package faults

import (
	"context"
	"errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
)

// halfOpen is a dead connection that one side believes in (C4). It is not made with
// toxiproxy, which tells clients when the server's side ends.
func halfOpen() Fault {
	var near, far *proxy.Proxy
	return Fault{
		Name:    "half-open",
		Injects: "The API server is killed and started again. Something in between has swallowed the end of the connections: for clients they are open. New connections pass.",
		Right:   "Within the bound reads fail, for Stale or Stuck. The program closes the dead connection when it is told to reconnect.",
		Own:     true,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stuck, invalidation.Stale, invalidation.Relist}, Told: true},
		Prepare: func(_ context.Context, s *Stage) error {
			to, err := address(s.Cluster.API)
			if err != nil {
				return err
			}
			if far, err = s.tcpProxy(to); err != nil {
				return err
			}
			if near, err = s.tcpProxy(far.Address()); err != nil {
				return err
			}
			s.Config = s.Cluster.Config()
			s.Config.Host = "https://" + near.Address()
			return nil
		},
		Inject: func(ctx context.Context, s *Stage) error {
			to, err := address(s.Cluster.API)
			if err != nil {
				return err
			}
			far.Stall()
			near.Redirect(to)
			err = s.Cluster.API.Kill()
			err = errors.Join(err, s.Cluster.API.Start(context.WithoutCancel(ctx)))
			return errors.Join(err, s.Hold(ctx))
		},
	}
}

// tcpProxy starts a TCP proxy that ends with the stage.
func (s *Stage) tcpProxy(to string) (*proxy.Proxy, error) {
	p, err := proxy.Start(to)
	if err == nil {
		s.Defer(p.Close)
	}
	return p, err
}
