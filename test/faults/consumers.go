package faults

import (
	"context"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
)

// consumerBlocks is a program that is too slow for what it is told (C41).
func consumerBlocks() Fault {
	return consumers("consumer-blocks", system.Blocked,
		"What the program does when the cache tells it something does not return, until the window is over.")
}

// consumerPanics is a program that cannot take what it is told (C38).
func consumerPanics() Fault {
	return consumers("consumer-panics", system.Panicking,
		"What the program does when the cache tells it something panics, until the window is over.")
}

// consumers is a fault of the program itself: SafeStore tells hooks of generations
// and a subscription of changes, the peers tell handlers of events.
func consumers(name, how, injects string) Fault {
	return Fault{
		Name:    name,
		Injects: injects,
		Right:   "Reads go on, but for the revocation that is asked for so that there is something to tell. Memory stays as it is.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Requested}, Told: true},
		Inject: func(ctx context.Context, s *Stage) error {
			for _, p := range s.Processes {
				if err := p.Consume(how); err != nil {
					return err
				}
			}
			if err := s.Hold(ctx); err != nil {
				return err
			}
			for _, p := range s.Processes {
				if err := p.Consume(system.Well); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
