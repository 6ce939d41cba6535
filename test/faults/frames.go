package faults

import (
	"bytes"
	"context"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/internal/gateway"
)

// broken is how many events of a watch are whole before one is not.
const broken = 3

// truncatedFrames is a stream cut off where it must not be taken for whole (C24).
func truncatedFrames() Fault {
	return Fault{
		Name:    "truncated-frames",
		Injects: "Each watch ends in the middle of its fourth event, as if that were in order.",
		Right:   "What is cut off is not taken in, and the watch resumes from the last whole event: answers stay right, or reads fail for Stale, Stuck, Relist or BadData.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck, invalidation.Relist, invalidation.BadData}},
		Inject: editing(func(event []byte) ([]byte, bool) {
			return event[:len(event)/2], false
		}),
	}
}

// garbledFrames is an event that cannot be decoded, and must not be skipped (C24).
func garbledFrames() Fault {
	return Fault{
		Name:    "garbled-frames",
		Injects: "The fourth event of each watch is something that cannot be decoded.",
		Right:   "It is not skipped: reads fail for BadData, Stale, Stuck or Relist until the set is known to be complete.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck, invalidation.Relist, invalidation.BadData}},
		Inject: editing(func(event []byte) ([]byte, bool) {
			return append(bytes.Repeat([]byte{'#'}, len(event)-1), '\n'), true
		}),
	}
}

// editing breaks an event of every watch.
func editing(breaks gateway.EventEditor) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		s.Gateway.EditEvents(atFourth(breaks))
		s.Gateway.End()
		err := s.Hold(ctx)
		s.Gateway.EditEvents(nil)
		s.Gateway.End()
		return err
	}
}

// atFourth breaks an event of every watch, and lets the others pass.
func atFourth(breaks gateway.EventEditor) func() gateway.EventEditor {
	return func() gateway.EventEditor {
		n := 0
		return func(event []byte) ([]byte, bool) {
			if n++; n == broken+1 {
				return breaks(event)
			}
			return event, true
		}
	}
}
