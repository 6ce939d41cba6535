package browser

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// stores returns one store in each state, with names and errors as long as they
// get, on fakes.
func stores(t *testing.T) []safestore.Readiness {
	t.Helper()
	ready := store(t, "ready.example.com/v1beta1, the one with a long name, in namespace kube-system", nil)
	group, err := safestore.NewGroup("group", store(t, "member", nil), store(t, "other", nil))
	require.NoError(t, err)
	t.Cleanup(group.Close)
	require.NoError(t, await(group))
	for range 3 { // some history
		require.NoError(t, await(ready))
		require.True(t, ready.Revoke(ready.Token(), errors.New("the program knows better")))
	}
	require.NoError(t, await(ready))

	refused := store(t, "refused", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
		errors.New(`User "system:serviceaccount:admission-webhooks:webhook-server" cannot list resource "configmaps" in API group "" at the cluster scope`)))
	absent := store(t, "absent", errors.New("dial tcp: lookup kubernetes.default.svc.cluster.local.averyveryverylongnamethatcannotbebrokenanywhere.example.com: no such host"))
	for _, s := range []*safestore.Store[*corev1.ConfigMap]{refused, absent} {
		require.Eventually(t, func() bool { return s.Status().Watch.LastError != nil }, time.Minute, time.Millisecond, s.Name())
	}
	idle, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(fake.NewSimpleClientset().CoreV1().ConfigMaps("")), safestore.Options{Name: "idle"})
	require.NoError(t, err)
	return []safestore.Readiness{ready, group, refused, absent, idle}
}

// store returns a store that runs until the test ends. All that it asks is
// answered with the refusal, if there is one.
func store(t *testing.T, name string, refusal error) *safestore.Store[*corev1.ConfigMap] {
	t.Helper()
	client := fake.NewSimpleClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	if refusal != nil {
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, refusal })
	}
	s, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(client.CoreV1().ConfigMaps("")), safestore.Options{Name: name})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return s
}

func await(r safestore.Readiness) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := r.WaitReady(ctx)
	return err
}
