package prometheus_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// wire is an API server of ConfigMaps, and a registry.
type wire struct {
	*wiretest.Server
	t        *testing.T
	maps     *wiretest.Collection
	registry *prom.Registry
}

// onWire runs a test in a bubble.
func onWire(t *testing.T, test func(*testing.T, *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{Server: wiretest.New(t), t: t, registry: prom.NewPedanticRegistry()}
		w.maps = w.Resource(wiretest.ConfigMaps)
		test(t, w)
	})
}

// store returns a store that is ready, and stopped with the test.
func (w *wire) store(name string) *safestore.Store[*corev1.ConfigMap] {
	w.t.Helper()
	source := watcher.ListWatch(kubernetes.NewForConfigOrDie(w.Config()).CoreV1().ConfigMaps(""))
	s, err := safestore.New[*corev1.ConfigMap](source, safestore.Options{Name: name})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{}))
	w.t.Cleanup(cancel)
	go s.Run(ctx)
	_, err = s.WaitReady(ctx)
	require.NoError(w.t, err)
	synctest.Wait()
	return s
}

// fill makes n objects on the server.
func (w *wire) fill(n int) {
	for i := range n {
		w.maps.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("map-", i)}})
	}
	synctest.Wait()
}

// badlyRevoked returns a store that is revoked by a policy whose reason is no text.
func (w *wire) badlyRevoked() *safestore.Store[*corev1.ConfigMap] {
	w.t.Helper()
	source := watcher.ListWatch(kubernetes.NewForConfigOrDie(w.Config()).CoreV1().ConfigMaps(""))
	s, err := safestore.New[*corev1.ConfigMap](source, safestore.Options{Watch: watcher.Options{
		Policy: func(o invalidation.Observation) invalidation.Decision {
			d := invalidation.Default(o)
			if d.Revoke != "" {
				d.Revoke = "\xff"
			}
			return d
		},
	}})
	require.NoError(w.t, err)
	w.Break(wiretest.All, wiretest.Answer(apierrors.NewUnauthorized("who?")))
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{}))
	w.t.Cleanup(cancel)
	go s.Run(ctx)
	synctest.Wait()
	return s
}
