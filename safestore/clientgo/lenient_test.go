package clientgo_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// C24: code that knows of no lenient stores is not given a part for the whole.
func TestC24ListersOnALenientStore(t *testing.T) {
	pod := func(namespace, name string, deadline any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": namespace, "name": name},
			"spec":     map[string]any{"activeDeadlineSeconds": deadline},
		}}
	}
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme,
		pod("x", "good", int64(1)), pod("x", "bad", "soon"), pod("y", "good", int64(1)))
	store, err := safestore.New[*corev1.Pod](
		watcher.ListWatch(client.Resource(corev1.SchemeGroupVersion.WithResource("pods"))), safestore.Options{Lenient: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	_, err = store.WaitReady(ctx)
	require.NoError(t, err)

	pods := corelisters.NewPodLister(clientgo.Indexer(ctx, store))
	list := func(list func(labels.Selector) ([]*corev1.Pod, error)) (found []*corev1.Pod, err error) {
		defer clientgo.Recover(&err)
		return list(labels.Everything())
	}
	_, err = list(pods.List)
	assert.ErrorIs(t, err, safestore.ErrPartial)
	_, err = list(pods.Pods("x").List)
	assert.ErrorIs(t, err, safestore.ErrPartial)
	found, err := list(pods.Pods("y").List)
	assert.NoError(t, err, "nothing is missing there")
	assert.Len(t, found, 1)

	_, err = pods.Pods("x").Get("good")
	assert.NoError(t, err)
	_, err = pods.Pods("x").Get("bad")
	var bad *safestore.BadObjectError
	assert.ErrorAs(t, err, &bad)
	assert.False(t, apierrors.IsNotFound(err))
}
