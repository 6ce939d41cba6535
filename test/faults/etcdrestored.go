package faults

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// etcdRestored is the server going back in time (C28).
func etcdRestored() Fault {
	return Fault{
		Name:    "etcd-restored",
		Injects: "etcd is put back to a snapshot from some seconds ago. Versions are given out a second time, and a watch from the future is silent for ever.",
		Right:   "The rewind is found by asking: reads fail, for Rewound, or Stale before, and the set is listed again.",
		Own:     true,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Rewound, invalidation.Stale, invalidation.Stuck, invalidation.Relist}, Told: true},
		Prepare: direct,
		Inject:  restore,
	}
}

func restore(ctx context.Context, s *Stage) error {
	snapshot, err := s.Cluster.Etcd.Snapshot()
	if err != nil {
		return err
	}
	if err := Pass(ctx, 3*time.Second); err != nil {
		return err
	}
	// More versions are lost than a starting API server gives out.
	for i := range 2000 {
		if _, err := s.Etcd.Put(ctx, "/skipped", strconv.Itoa(i)); err != nil {
			return err
		}
	}
	resume := s.Writer.Pause()
	defer resume()
	if err := s.Truth.Close(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err = s.Cluster.API.Kill()
	err = errors.Join(err, s.Cluster.Etcd.Restore(ctx, snapshot))
	if err != nil {
		return err
	}
	if err := s.Truth.Again(ctx); err != nil {
		return err
	}
	if err := s.Cluster.API.Start(ctx); err != nil {
		return err
	}
	resume()
	return s.Hold(ctx)
}
