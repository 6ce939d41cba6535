package faults

import (
	"context"
	"errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// trickle is an open stream that brings everything, too late (C2).
func trickle() Fault {
	var proxy *toxic
	return Fault{
		Name:    "latency-and-trickle",
		Injects: "Everything takes half a second longer, in packets of a few bytes, and the server's answers come at one kilobyte a second: less than the changes are.",
		Right:   "A stream that falls behind further and further is no longer good: reads fail for Stale or Stuck when it is behind by the bound.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck}},
		Prepare: func(_ context.Context, s *Stage) (err error) {
			proxy, err = s.ThroughTCP(s.Cluster.API)
			return err
		},
		Inject: func(ctx context.Context, s *Stage) error {
			for _, toxic := range []struct {
				kind string
				attributes
			}{
				{"latency", attributes{"latency": 500, "jitter": 200}},
				{"slicer", attributes{"average_size": 64, "size_variation": 32, "delay": 1000}},
				{"bandwidth", attributes{"rate": 1}},
			} {
				if err := proxy.add(toxic.kind, "downstream", toxic.attributes); err != nil {
					return err
				}
			}
			err := s.Hold(ctx)
			// The slowest first: each waits for what is still on its way.
			for _, kind := range []string{"bandwidth", "slicer", "latency"} {
				err = errors.Join(err, proxy.remove(ctx, kind, "downstream"))
			}
			return err
		},
	}
}
