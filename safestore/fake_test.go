package safestore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// These tests are what users' own unit tests look like: client-go's fakes, and no
// settings for them.

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string]string{"key": value},
	}
}

var keyA = types.NamespacedName{Namespace: "default", Name: "a"}

// run starts a store and stops it with the test.
func run[T safestore.Object](t *testing.T, source watcher.Source) *safestore.Store[T] {
	t.Helper()
	store, err := safestore.New[T](source, safestore.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	return store
}

// eventually waits for a condition on the store without sleeping: each event of
// the fakes is followed by a change of what is read.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, time.Millisecond)
}

func TestTypedFake(t *testing.T) {
	client := fake.NewSimpleClientset(configMap("a", "1"))
	store := run[*corev1.ConfigMap](t, watcher.ListWatch(client.CoreV1().ConfigMaps("")))
	got, err := store.Get(t.Context(), keyA)
	require.NoError(t, err)
	assert.Equal(t, "1", got.Data["key"])

	maps := client.CoreV1().ConfigMaps("default")
	_, err = maps.Update(t.Context(), configMap("a", "2"), metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool {
		got, err := store.Get(t.Context(), keyA)
		return err == nil && got.Data["key"] == "2"
	})
	require.NoError(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	eventually(t, func() bool {
		_, err := store.Get(t.Context(), keyA)
		return apierrors.IsNotFound(err)
	})
}

// A fake keeps the resource versions that a test gives its objects, which have
// nothing to do with those of its lists.
func TestTypedFakeWithVersionsOfItsOwn(t *testing.T) {
	object := configMap("a", "1")
	object.ResourceVersion = "7"
	client := fake.NewSimpleClientset(object, configMap("b", "1"), configMap("c", "1"))
	store := run[*corev1.ConfigMap](t, watcher.ListWatch(client.CoreV1().ConfigMaps("")))
	first, err := store.WaitReady(t.Context())
	require.NoError(t, err)
	for _, value := range []string{"2", "3"} {
		object := configMap("a", value)
		object.ResourceVersion = "1"
		_, err := client.CoreV1().ConfigMaps("default").Update(t.Context(), object, metav1.UpdateOptions{})
		require.NoError(t, err)
		eventually(t, func() bool {
			got, err := store.Get(t.Context(), keyA)
			return err == nil && got.Data["key"] == value
		})
	}
	assert.Same(t, first, store.Token(), "not taken for a rewind")
}

func TestDynamicFake(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, configMap("a", "1"))
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	store := run[*unstructured.Unstructured](t, watcher.ListWatch(client.Resource(gvr)))
	got, err := store.Get(t.Context(), keyA)
	require.NoError(t, err)
	value, _, _ := unstructured.NestedString(got.Object, "data", "key")
	assert.Equal(t, "1", value)

	require.NoError(t, client.Resource(gvr).Namespace("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	eventually(t, func() bool {
		_, err := store.Get(t.Context(), keyA)
		return apierrors.IsNotFound(err)
	})
}

func TestMetadataFake(t *testing.T) {
	s := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	client := metadatafake.NewSimpleMetadataClient(s, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
	})
	store := run[*metav1.PartialObjectMetadata](t,
		watcher.ListWatch(client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))))
	got, err := store.Get(t.Context(), keyA)
	require.NoError(t, err)
	assert.Equal(t, "a", got.Name)
}

func TestFakeThatFails(t *testing.T) {
	client := fake.NewSimpleClientset()
	client.PrependReactor("list", "configmaps", fails(errors.New("no")))
	store := run[*corev1.ConfigMap](t, watcher.ListWatch(client.CoreV1().ConfigMaps("")))
	eventually(t, func() bool { return store.Status().Watch.LastError != nil })
	_, err := store.Snapshot()
	assert.ErrorIs(t, err, safestore.ErrNotReady)
	assert.ErrorContains(t, err, "last error: list: no")
}

func fails(err error) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
}

// The objects of a fake have no versions, and their deletion can be waited for.
func TestWaitForDeletionOnAFake(t *testing.T) {
	client := fake.NewSimpleClientset(configMap("a", "1"))
	maps := client.CoreV1().ConfigMaps("default")
	store := run[*corev1.ConfigMap](t, watcher.ListWatch(client.CoreV1().ConfigMaps("")))
	object, err := store.Get(t.Context(), keyA)
	require.NoError(t, err)
	require.NoError(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	for range 2 {
		require.NoError(t, store.WaitForDeletion(t.Context(), object))
		_, err = store.Get(t.Context(), keyA)
		assert.True(t, apierrors.IsNotFound(err))
	}
}

// A fake loses what happens between its list and its watch. A proof there is a list whose
// contents are compared: a change and a deletion that were lost are found by Sync, and by the
// bound.
func TestFakeThatLosesAnEvent(t *testing.T) {
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	for name, lose := range map[string]func(*fake.Clientset) error{
		"deletion": func(c *fake.Clientset) error { return c.Tracker().Delete(resource, "default", "a") },
		"change":   func(c *fake.Clientset) error { return c.Tracker().Update(resource, configMap("a", "2"), "default") },
		"creation": func(c *fake.Clientset) error { return c.Tracker().Create(resource, configMap("b", "1"), "default") },
	} {
		for _, bound := range []time.Duration{0, 10 * time.Second} {
			t.Run(fmt.Sprint(name, bound), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := fake.NewClientset(configMap("a", "1"))
					watches := 0
					client.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
						if watches++; watches == 2 { // the first is a WatchList, which fakes do not know
							require.NoError(t, lose(client))
						}
						return false, nil, nil
					})
					store, err := safestore.New[*corev1.ConfigMap](
						watcher.ListWatch(client.CoreV1().ConfigMaps("")), safestore.Options{MaxStaleness: bound})
					require.NoError(t, err)
					ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
					defer cancel()
					done := make(chan error, 1)
					go func() { done <- store.Run(ctx) }()
					_, err = store.WaitReady(ctx)
					require.NoError(t, err)
					require.NoError(t, store.Sync(ctx))
					list, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
					require.NoError(t, err)
					held, err := store.List(ctx, safestore.Sorted())
					require.NoError(t, err)
					require.Len(t, held, len(list.Items))
					for i := range held {
						assert.Equal(t, list.Items[i].Data, held[i].Data)
					}
					cancel()
					<-done
				})
			})
		}
	}
}
