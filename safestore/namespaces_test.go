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
		err := read()
		assert.EqualError(t, err, `safestore: maps: namespace "z" is out of the store's scope: it is none of its namespaces`)
		assert.ErrorIs(t, err, safestore.ErrOutOfScope)
	}
	// Neither is what has no namespace.
	nowhere := types.NamespacedName{Name: "a"}
	for _, read := range []func() error{
		func() error { _, err := all.Get(t.Context(), nowhere); return err },
		func() error { _, err := all.GetDeepCopy(t.Context(), nowhere); return err },
		func() error { _, err := snapshot.Get(nowhere); return err },
		func() error { return all.WaitFor(t.Context(), &metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}) },
		func() error { return all.WaitForDeletion(t.Context(), &metav1.ObjectMeta{Name: "a"}) },
	} {
		assert.EqualError(t, read(),
			`safestore: maps: key "a" without namespace is out of the store's scope: it is in none of its namespaces`)
	}
}

// A program measures the stores of all namespaces, and their readiness together.
func TestSamplesOfNamespaces(t *testing.T) {
	client := fake.NewClientset(mapIn("x", "a"), mapIn("x", "b"), mapIn("y", "a"))
	all := runNamespaces(t, client, "y", "x")
	_, err := all.WaitSnapshot(t.Context())
	require.NoError(t, err)
	outer, err := safestore.NewGroup("outer", all)
	require.NoError(t, err)
	defer outer.Close()
	for groups, of := range map[int]safestore.Readiness{1: all, 2: outer} {
		objects, ready := map[string]float64{}, 0
		for s := range safestore.Samples(of) {
			switch s.Metric {
			case "safestore_objects":
				objects[s.Labels[0]] = s.Value
			case "safestore_group_ready":
				ready++
			}
		}
		assert.Equal(t, map[string]float64{"maps in x": 2, "maps in y": 1}, objects)
		assert.Equal(t, groups, ready)
	}
}

// A second Run fails, and does no more than that.
func TestNamespacesRunOnce(t *testing.T) {
	client := fake.NewClientset(mapIn("x", "a"), mapIn("y", "a"))
	all := runNamespaces(t, client, "y", "x")
	tok, err := all.WaitReady(t.Context())
	require.NoError(t, err)
	assert.ErrorIs(t, all.Run(t.Context()), safestore.ErrRunTwice)
	assert.NoError(t, tok.Context().Err())
	list, err := all.List(over())
	assert.NoError(t, err)
	assert.Len(t, list, 2)
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
		"safestore: v1.ConfigMap: a name is empty": func() error {
			_, err := safestore.NewNamespaces[*corev1.ConfigMap](source, []string{""}, safestore.Options{})
			return err
		},
	} {
		assert.EqualError(t, try(), want)
	}
	all, err := safestore.NewNamespaces[*corev1.ConfigMap](source, []string{"x"}, safestore.Options{})
	assert.EqualError(t, err, `safestore: v1.ConfigMap: "x": safestore: source is nil`)
	assert.Nil(t, all)

	client := fake.NewClientset()
	lists := func(namespace string) watcher.Source { return watcher.ListWatch(client.CoreV1().ConfigMaps(namespace)) }
	all, err = safestore.NewNamespaces[*corev1.ConfigMap](lists, []string{"x", "y", "x"}, safestore.Options{})
	assert.EqualError(t, err, `safestore: v1.ConfigMap has "x" already`)
	assert.Nil(t, all)
}

func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
