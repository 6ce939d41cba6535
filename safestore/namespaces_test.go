package safestore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

func mapIn(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}}}
}

func runNamespaces(t *testing.T, client *fake.Clientset, namespaces ...string) *safestore.Namespaces[*corev1.ConfigMap] {
	t.Helper()
	source := func(namespace string) watcher.Source {
		return watcher.ListWatch(client.CoreV1().ConfigMaps(namespace))
	}
	all, err := safestore.NewNamespaces(source, namespaces, safestore.Options{Name: "maps"},
		safestore.WithLabelIndex[*corev1.ConfigMap]("name"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- all.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
		assert.ErrorIs(t, all.NotReady(), invalidation.Closed)
	})
	return all
}

// Several namespaces read as one store of these and no others.
func TestNamespaces(t *testing.T) {
	client := fake.NewClientset(mapIn("x", "a"), mapIn("x", "b"), mapIn("y", "a"), mapIn("z", "a"))
	all := runNamespaces(t, client, "y", "x")
	for want, opts := range map[int][]safestore.ListOption{
		3: nil,
		2: {safestore.ByIndex("name", "a")},
		1: {safestore.InNamespace("y")},
		0: {safestore.ByIndex("name", "b"), safestore.InNamespace("y")},
	} {
		list, err := all.List(t.Context(), opts...)
		require.NoError(t, err)
		assert.Len(t, list, want)
		snapshot, err := all.WaitSnapshot(t.Context())
		require.NoError(t, err)
		count, err := snapshot.Count(opts...)
		require.NoError(t, err)
		assert.Equal(t, want, count)
	}
	snapshot, err := all.WaitSnapshot(t.Context())
	require.NoError(t, err)
	sorted, err := snapshot.List(safestore.Sorted(), safestore.Limit(2))
	require.NoError(t, err)
	assert.Equal(t, "x/b", safestore.Key(sorted[1]).String())
	assert.Same(t, all.Token(), snapshot.Token())

	_, err = all.Get(t.Context(), types.NamespacedName{Namespace: "x", Name: "c"})
	assert.True(t, apierrors.IsNotFound(err))
	// What the store does not have is not absent.
	foreign := types.NamespacedName{Namespace: "z", Name: "a"}
	for _, read := range []func() error{
		func() error { _, err := all.Get(t.Context(), foreign); return err },
		func() error { _, err := snapshot.Get(foreign); return err },
		func() error { _, err := all.List(t.Context(), safestore.InNamespace("z")); return err },
		func() error { _, err := snapshot.Count(safestore.InNamespace("z")); return err },
	} {
		assert.EqualError(t, read(), `safestore: maps: namespace "z" is not one of its namespaces`)
	}
	_, err = all.Get(t.Context(), types.NamespacedName{Name: "a"})
	assert.EqualError(t, err, "safestore: the key has no namespace")
}

// A namespace that may not be read keeps only those waiting who need it (C58).
func TestC58NamespaceWithoutRights(t *testing.T) {
	client := fake.NewClientset(mapIn("x", "a"))
	client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() != "y" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
	})
	all := runNamespaces(t, client, "x", "y")
	_, err := all.Get(t.Context(), types.NamespacedName{Namespace: "x", Name: "a"})
	assert.NoError(t, err)
	y, ok := all.Store("y")
	require.True(t, ok)
	eventually(t, func() bool { return y.Status().Revocation != nil })
	_, err = all.Snapshot()
	assert.ErrorIs(t, err, invalidation.Forbidden)
	assert.ErrorContains(t, err, "store is not ready: maps in y")
	_, err = all.List(over())
	assert.ErrorIs(t, err, safestore.ErrNotReady)
}

func TestNamespacesMisuse(t *testing.T) {
	source := func(string) watcher.Source { return nil }
	for want, try := range map[string]func() error{
		"safestore: NewNamespaces without a source": func() error {
			_, err := safestore.NewNamespaces[*corev1.ConfigMap](nil, []string{"x"}, safestore.Options{})
			return err
		},
		"safestore: NewNamespaces without namespaces": func() error {
			_, err := safestore.NewNamespaces[*corev1.ConfigMap](source, nil, safestore.Options{})
			return err
		},
		"safestore: NewNamespaces with an empty namespace": func() error {
			_, err := safestore.NewNamespaces[*corev1.ConfigMap](source, []string{""}, safestore.Options{})
			return err
		},
	} {
		assert.EqualError(t, try(), want)
	}
	_, err := safestore.NewNamespaces[*corev1.ConfigMap](source, []string{"x"}, safestore.Options{})
	assert.Error(t, err, "New's own refusal of a nil source")
}

func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
