package faults

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// resets is what tells whether resuming costs a list (C48).
func resets() Fault {
	var proxy *toxic
	return Fault{
		Name:    "connection-resets",
		Injects: "Every second all connections are reset, in the middle of whatever they carry.",
		Right:   "The watch resumes from its version each time: answers stay right, and nothing is listed again. Reads may fail for Stale if there is no time for a proof.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck}},
		Prepare: func(_ context.Context, s *Stage) (err error) {
			proxy, err = s.ThroughTCP(s.Cluster.API)
			return err
		},
		Inject: func(ctx context.Context, s *Stage) error {
			return s.Every(ctx, time.Second-resetting, func() error {
				if err := proxy.add("reset_peer", "downstream", attributes{"timeout": 0}); err != nil {
					return err
				}
				err := Pass(ctx, resetting)
				proxy.clean(ctx)
				return err
			})
		},
	}
}

// resetting is how long connections are reset: long enough for each of them to
// carry something, which is what resets it.
const resetting = 200 * time.Millisecond
