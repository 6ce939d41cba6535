package e2e

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Gauge is the Go type of a custom resource whose definition lets more through
// than the type does.
type Gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Value int64 `json:"value"`
	} `json:"spec"`
}

func (g *Gauge) DeepCopyObject() runtime.Object {
	c := *g
	g.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// start runs a store until the test ends.
func start[T safestore.Object](t *testing.T, source watcher.Source, o safestore.Options) *safestore.Store[T] {
	t.Helper()
	store, err := safestore.New[T](source, o)
	require.NoError(t, err)
	run(t, store)
	return store
}

// run runs something until the test ends.
func run(t *testing.T, r interface{ Run(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
}

// C24: on a real server, an object that a definition lets through and the program's
// type does not is named, or quarantined; listed and watched.
func TestC24ObjectsThatDoNotFit(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	gvr := schema.GroupVersionResource{Group: exampleGroup, Version: "v1", Resource: "gauges"}
	crd := definition(gvr.Resource, "Gauge", "spec", map[string]bool{"v1": true}, "v1")
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedMap(versions[0].(map[string]any),
		map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "schema", "openAPIV3Schema"))
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	e.install(t, crd)
	client := e.dynamic.Resource(gvr).Namespace(namespace)
	gauge := func(name string, value any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gvr.GroupVersion().String(), "kind": "Gauge",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"value": value},
		}}
	}
	eventually(t, "the resource is served", func() bool {
		_, err := client.Create(t.Context(), gauge("good", int64(1)), metav1.CreateOptions{})
		return err == nil
	})
	bad, err := client.Create(t.Context(), gauge("bad", "a lot"), metav1.CreateOptions{})
	require.NoError(t, err)

	strict := start[*Gauge](t, watcher.ListWatch(client), fast())
	options := fast()
	options.Lenient = true
	lenient := start[*Gauge](t, watcher.ListWatch(client), options)

	list, err := lenient.List(t.Context())
	assert.ErrorIs(t, err, safestore.ErrPartial)
	require.Len(t, list, 1)
	assert.EqualValues(t, 1, list[0].Spec.Value)
	_, err = lenient.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "bad"})
	assert.EqualError(t, err, "*e2e.Gauge "+namespace+"/bad: field spec.value cannot be decoded into e2e.Gauge")
	eventually(t, "the strict store says why it is not ready", func() bool { return strict.Status().Revocation != nil })
	assert.ErrorIs(t, strict.NotReady(), invalidation.BadData)
	assert.ErrorContains(t, strict.NotReady(), "field spec.value cannot be decoded into e2e.Gauge")

	// Mended, both have it; broken again while it is watched, one of them has not.
	for n, value := range []any{int64(2), "a lot", int64(3)} {
		bad.Object["spec"] = map[string]any{"value": value}
		bad, err = client.Update(t.Context(), bad, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, lenient.WaitFor(t.Context(), bad))
		_, err := lenient.List(t.Context())
		if n == 1 {
			assert.ErrorIs(t, err, safestore.ErrPartial)
			eventually(t, "the strict store is revoked", func() bool { return strict.NotReady() != nil })
			continue
		}
		assert.NoError(t, err)
		got, err := strict.Get(t.Context(), safestore.Key(bad))
		require.NoError(t, err)
		assert.Equal(t, value, got.Spec.Value)
	}
}

// C42: a limit is a reason, and readiness returns when the set fits again.
func TestC42Limit(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	options := fast()
	options.MaxObjects = 3
	store := start[*corev1.ConfigMap](t, watcher.ListWatch(e.admin.CoreV1().ConfigMaps(namespace)), options)
	first, err := store.WaitReady(t.Context())
	require.NoError(t, err)
	for n := range 4 {
		_, err := e.admin.CoreV1().ConfigMaps(namespace).Create(t.Context(),
			configMap(namespace, "m"+strconv.Itoa(n), "1"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	<-first.Context().Done()
	assert.ErrorIs(t, first.Cause(), invalidation.TooLarge)
	require.NoError(t, e.admin.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "m0", metav1.DeleteOptions{}))
	_, err = store.WaitReady(t.Context())
	require.NoError(t, err)
}

// C58: two namespaces as one store, and a group over two resources, of which one
// is taken away.
func TestC58NamespacesAndGroups(t *testing.T) {
	t.Parallel()
	e := share(t)
	one, two := e.namespace(t), e.namespace(t)
	for _, namespace := range []string{one, two} {
		_, err := e.admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap(namespace, "a", "1"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	maps, err := safestore.NewNamespaces[*corev1.ConfigMap](func(namespace string) watcher.Source {
		return watcher.ListWatch(e.admin.CoreV1().ConfigMaps(namespace))
	}, []string{one, two}, fast())
	require.NoError(t, err)
	run(t, maps)
	secrets := start[*corev1.Secret](t, watcher.ListWatch(e.admin.CoreV1().Secrets(one)), fast())
	both, err := safestore.NewGroup("both", maps, secrets)
	require.NoError(t, err)
	t.Cleanup(both.Close)

	joint, err := both.WaitSnapshot(t.Context())
	require.NoError(t, err)
	all, err := maps.In(joint)
	require.NoError(t, err)
	for _, namespace := range []string{one, two} {
		_, err = all.Get(types.NamespacedName{Namespace: namespace, Name: "a"})
		assert.NoError(t, err)
	}
	_, err = all.Get(types.NamespacedName{Namespace: "default", Name: "a"})
	assert.Error(t, err)
	assert.False(t, apierrors.IsNotFound(err), "what is not looked at is not absent")

	tok := joint.Token()
	require.True(t, secrets.Revoke(secrets.Token(), nil))
	assert.ErrorIs(t, tok.Cause(), invalidation.Requested, "the group is over when Revoke returns")
	_, err = maps.List(t.Context())
	assert.NoError(t, err)
	_, err = both.WaitReady(t.Context())
	assert.NoError(t, err)
}
