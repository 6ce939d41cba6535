package faults

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/internal/bulk"
)

// continueExpires is a set that is forgotten while it is listed (C31).
func continueExpires() Fault {
	return Fault{
		Name:    "continue-expires",
		Injects: "From the start, the set comes in three pages, from a server without WatchList and without watch cache, and etcd forgets the version before the second one.",
		Right:   "Pages of two versions are never put together. Until one list is complete reads fail, and say why.",
		Own:     true,
		AtStart: true,
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Relist}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) error {
			err := bulk.ConfigMaps(ctx, s.Etcd, s.Namespace, 1200, func(i int) *corev1.ConfigMap {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-filler-%d", i)}}
			})
			if err != nil {
				return err
			}
			uncached, err := s.Cluster.StartReplica(ctx, "--watch-cache=false")
			if err != nil {
				return err
			}
			return s.ThroughGateway(uncached.Config())
		},
		Inject: func(ctx context.Context, s *Stage) error {
			answer := func(forget bool) func(*http.Request) *http.Response {
				return func(r *http.Request) *http.Response {
					query := r.URL.Query()
					if query.Get("sendInitialEvents") != "" {
						return refusal(apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil))
					}
					if forget && query.Has("continue") {
						if err := s.forget(r.Context()); err != nil {
							s.Log("%v", err)
						}
					}
					return nil
				}
			}
			s.Gateway.Answer(answer(true))
			err := s.Hold(ctx)
			s.Gateway.Answer(answer(false))
			return err
		},
	}
}

// forget makes etcd forget the versions that there were until now.
func (s *Stage) forget(ctx context.Context) error {
	if _, err := s.Etcd.Put(ctx, "/forgotten", ""); err != nil {
		return err
	}
	_, err := s.Cluster.Etcd.Compact(ctx)
	return err
}
