package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// A controller works on the objects of several namespaces, which come and go, as on
// those of a store.
func TestControllerForNamespaces(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		put := func(namespace, name string) {
			b.maps.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
			synctest.Wait()
		}
		put("one", "c")
		put("two", "d")
		put("three", "e")
		client := kubernetes.NewForConfigOrDie(b.Config()).CoreV1()
		all, err := safestore.NewNamespaces[*corev1.ConfigMap](func(namespace string) watcher.Source {
			return watcher.ListWatch(client.ConfigMaps(namespace))
		}, []string{"one", "two"}, safestore.Options{Name: "maps"})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer cancel()
		go all.Run(ctx)
		work := func(_ context.Context, req controller.Request) (controller.Result, error) {
			snapshot, err := all.In(req.Snapshot)
			if err == nil {
				_, err = snapshot.Get(req.Key)
			}
			if errors.Is(err, safestore.ErrOutOfScope) {
				return controller.Result{}, nil // its namespace was removed
			}
			return controller.Result{}, err
		}
		defer b.start(b.new(controller.Options{}, work, controller.For(all)))(nil)
		assert.ElementsMatch(t, []string{"c begins under 1", "c is done", "d begins under 1", "d is done"}, b.history.take())

		put("two", "f")
		assert.Equal(t, []string{"f begins under 1", "f is done"}, b.history.take())
		require.NoError(t, all.Add("three"))
		synctest.Wait()
		assert.Contains(t, b.history.take(), "e begins under 2")
		assert.True(t, all.Remove("two"))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"d begins under 2", "d is done", "f begins under 2", "f is done"}, b.history.take())
	})
}
