package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/internal/bulk"
)

// manyObjects is a relist that takes its time (C34).
func manyObjects() Fault {
	var proxy *toxic
	return Fault{
		Name:     "100000-objects-relisted",
		Injects:  "The caches are cut off while the API server is restarted, and have to list 100,000 objects again, all at the same time, while things change.",
		Right:    "Reads fail for Relist, or Stale if it takes longer than the bound, until the new set is complete. No read waits, and none sees a part.",
		Own:      true,
		Interval: 500 * time.Millisecond, // the peers copy the whole list for each read
		Heals:    2 * time.Minute,
		Expect:   Expect{Reasons: []invalidation.Reason{invalidation.Relist, invalidation.Stale, invalidation.Stuck}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) (err error) {
			n := 100_000
			if s.Brief {
				n = 5_000
			}
			err = bulk.ConfigMaps(ctx, s.Etcd, s.Namespace, n, func(i int) *corev1.ConfigMap {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("one-of-many-%d", i)}}
			})
			if err != nil {
				return err
			}
			proxy, err = s.ThroughTCP(s.Cluster.API)
			return err
		},
		Inject: func(ctx context.Context, s *Stage) error {
			proxy.Stop()
			err := s.Cluster.API.Restart(context.WithoutCancel(ctx))
			return errors.Join(err, proxy.Start())
		},
	}
}
