package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-safestore/kube-safestore/test/internal/bulk"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// configMap returns a ConfigMap with a value.
func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace:   namespace,
		Name:        name,
		Annotations: map[string]string{subject.ValueAnnotation: value},
	}}
}

func (e *env) create(t *testing.T, namespace, name, value string) *corev1.ConfigMap {
	t.Helper()
	obj, err := e.admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap(namespace, name, value), metav1.CreateOptions{})
	require.NoError(t, err)
	return obj
}

func (e *env) update(t *testing.T, namespace, name, value string) *corev1.ConfigMap {
	t.Helper()
	obj, err := e.admin.CoreV1().ConfigMaps(namespace).Update(t.Context(), configMap(namespace, name, value), metav1.UpdateOptions{})
	require.NoError(t, err)
	return obj
}

func (e *env) delete(t *testing.T, namespace, name string) {
	t.Helper()
	require.NoError(t, e.admin.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// change makes one change of each kind, to the objects of seed.
func (e *env) change(t *testing.T, namespace, value string) {
	t.Helper()
	e.update(t, namespace, "updated", value)
	e.delete(t, namespace, "deleted")
	e.create(t, namespace, "created-"+value, value)
	e.delete(t, namespace, "recreated")
	e.create(t, namespace, "recreated", value)
}

// seed makes the objects that change works on.
func (e *env) seed(t *testing.T, namespace string) {
	t.Helper()
	for _, name := range []string{"updated", "deleted", "recreated", "untouched"} {
		e.create(t, namespace, name, "0")
	}
}

// fill creates many objects, several at a time.
func (e *env) fill(t *testing.T, namespace string, n int) {
	t.Helper()
	require.NoError(t, inParallel(t.Context(), n, func(ctx context.Context, i int) error {
		return createNumbered(ctx, e.admin, namespace, i)
	}))
}

// fillFast writes objects past the API server.
func (e *env) fillFast(t *testing.T, namespace string, n int, make func(int) *corev1.ConfigMap) {
	t.Helper()
	client, err := e.Etcd.Client()
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, bulk.ConfigMaps(t.Context(), client, namespace, n, make))
}

func createNumbered(ctx context.Context, client kubernetes.Interface, namespace string, i int) error {
	obj := configMap(namespace, fmt.Sprintf("n%06d", i), "0")
	obj.Labels = map[string]string{"half": fmt.Sprint(i % 2)}
	_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, obj, metav1.CreateOptions{})
	return err
}

// inParallel calls f for 0 to n-1 from a few goroutines.
func inParallel(ctx context.Context, n int, f func(context.Context, int) error) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	errs := make([]error, 16)
	for w := range errs {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = f(ctx, i)
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}
