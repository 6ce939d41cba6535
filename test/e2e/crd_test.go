package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

const (
	exampleGroup = "e2e.safestore.test"
	// valueInSpec and valueInData are two definitions of the same resource.
	valueInSpec, valueInData = "spec", "data"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definition returns the CRD of a resource that is served in some versions, the
// first of which is stored, with one field.
func definition(plural, kind, field string, versions map[string]bool, stored string) *unstructured.Unstructured {
	var list []any
	for version, served := range versions {
		list = append(list, map[string]any{
			"name": version, "served": served, "storage": version == stored,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object",
				"properties": map[string]any{
					field: map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
				},
			}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + exampleGroup},
		"spec": map[string]any{
			"group":    exampleGroup,
			"scope":    "Namespaced",
			"names":    map[string]any{"plural": plural, "kind": kind},
			"versions": list,
		},
	}}
}

// install creates a CRD, which is deleted with the test.
func (e *env) install(t *testing.T, crd *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := e.dynamic.Resource(definitions).Create(t.Context(), crd, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		err := e.dynamic.Resource(definitions).Delete(context.WithoutCancel(t.Context()), crd.GetName(), metav1.DeleteOptions{})
		assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	})
	return created
}

// createCustom creates an object as soon as the server serves its resource.
func (e *env) createCustom(t *testing.T, gvr schema.GroupVersionResource, kind, namespace, name, field string) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(),
		"kind":       kind,
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]any{subject.ValueAnnotation: field},
		},
		field: map[string]any{"key": "value"},
	}}
	var err error
	eventually(t, "the resource is served", func() bool {
		_, err = e.dynamic.Resource(gvr).Namespace(namespace).Create(t.Context(), obj, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
}

// subjectsOf returns stores of a custom resource.
func subjectsOf(t *testing.T, e *env, gvr schema.GroupVersionResource, o subject.Options) []*subject.Subject {
	t.Helper()
	subjects := []*subject.Subject{subject.Dynamic(t, e.Config(), gvr, o), subject.Metadata(t, e.Config(), gvr, o)}
	o.Paged = true
	return append(subjects, subject.Dynamic(t, e.Config(), gvr, o))
}

// assertGone checks that a resource that is not served is never mistaken for one
// that has no objects, nor for an object that does not exist.
func assertGone(t *testing.T, s *subject.Subject) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, fromView := s.View()
	_, fromGet := s.GetAny(ctx, types.NamespacedName{Namespace: s.Namespace, Name: "old"})
	list, fromList := s.ListAny(ctx)
	assert.Nil(t, list)
	for from, err := range map[string]error{"View": fromView, "Get": fromGet, "List": fromList} {
		require.ErrorIs(t, err, safestore.ErrNotReady, from)
		assert.ErrorIs(t, err, invalidation.ResourceGone, from)
		assert.False(t, apierrors.IsNotFound(err), "%s: %v", from, err)
		assert.Contains(t, err.Error(), "the server could not find the requested resource", from)
		var status apierrors.APIStatus
		assert.False(t, errors.As(err, &status), "%s: a 404 must not be found in it", from)
	}
	assert.Nil(t, s.StaleView())
}

// C23.
func TestTheDefinitionIsInstalledLater(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	gvr := schema.GroupVersionResource{Group: exampleGroup, Version: "v1", Resource: "laters"}
	subjects := subjectsOf(t, e, gvr, subject.Options{Store: fast(), Namespace: namespace})
	for _, s := range subjects {
		s.Start(t)
		s.AwaitRequests(t, "answers", func(all []requests.Request) bool { return len(all) > 2 })
		assertGone(t, s)
	}
	e.install(t, definition(gvr.Resource, "Later", valueInSpec, map[string]bool{"v1": true}, "v1"))
	for _, s := range subjects {
		s.AwaitReady(t)
	}
	e.createCustom(t, gvr, "Later", namespace, "new", valueInSpec)
	for _, s := range subjects {
		s.AwaitContents(t, e.contents(t, gvr, namespace))
		assert.Empty(t, s.Status().Watch.WatchListRefused)
	}
}

// C25.
func TestTheDefinitionIsDeletedAndCreatedAgain(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	gvr := schema.GroupVersionResource{Group: exampleGroup, Version: "v1", Resource: "agains"}
	old := e.install(t, definition(gvr.Resource, "Again", valueInSpec, map[string]bool{"v1": true}, "v1"))
	e.createCustom(t, gvr, "Again", namespace, "old", valueInSpec)
	e.createCustom(t, gvr, "Again", namespace, "both", valueInSpec)
	o := fast()
	o.Watch.WatchTimeout = time.Second
	subjects := subjectsOf(t, e, gvr, subject.Options{Store: o, Namespace: namespace})
	diaries := map[*subject.Subject]*subject.Diary{}
	for _, s := range subjects {
		diaries[s] = subject.KeepDiary(s)
	}
	startAll(t, subjects)
	before := e.contents(t, gvr, namespace)
	require.Len(t, before, 2)
	for _, s := range subjects {
		s.AwaitContents(t, before)
	}

	require.NoError(t, e.dynamic.Resource(definitions).Delete(t.Context(), old.GetName(), metav1.DeleteOptions{}))
	for _, s := range subjects {
		eventually(t, "the resource is gone", func() bool {
			_, err := s.View()
			return errors.Is(err, invalidation.ResourceGone)
		})
		assertGone(t, s)
	}
	eventually(t, "the definition is gone", func() bool {
		_, err := e.dynamic.Resource(definitions).Get(t.Context(), old.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})

	gone := map[*subject.Subject]uint64{}
	for _, s := range subjects {
		gone[s] = s.Token().Generation()
	}
	e.install(t, definition(gvr.Resource, "Again", valueInData, map[string]bool{"v1": true}, "v1"))
	e.createCustom(t, gvr, "Again", namespace, "both", valueInData)
	after := e.contents(t, gvr, namespace)
	require.Equal(t, []string{"both"}, after.Names())
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		view := s.AwaitContents(t, after)
		assert.GreaterOrEqual(t, view.Token.Generation(), gone[s])
		s.Stop(t, nil)
		assert.Empty(t, diaries[s].OutOfOrder())
		assert.Contains(t, diaries[s].Entries(), "ready 1")
		t.Log(diaries[s].Entries())
	})
}

// C25: a version of a resource that is no longer served ends like one that is
// deleted; the stores of other versions go on.
func TestAVersionIsNoLongerServed(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	v1 := schema.GroupVersionResource{Group: exampleGroup, Version: "v1", Resource: "versions"}
	v1beta1 := v1
	v1beta1.Version = "v1beta1"
	crd := e.install(t, definition(v1.Resource, "Version", valueInSpec, map[string]bool{"v1": true, "v1beta1": true}, "v1"))
	e.createCustom(t, v1, "Version", namespace, "old", valueInSpec)
	o := subject.Options{Store: fast(), Namespace: namespace}
	o.Store.Watch.WatchTimeout = time.Second
	leaving, staying := subjectsOf(t, e, v1beta1, o), subjectsOf(t, e, v1, o)
	startAll(t, append(append([]*subject.Subject(nil), leaving...), staying...))

	update := definition(v1.Resource, "Version", valueInSpec, map[string]bool{"v1": true, "v1beta1": false}, "v1")
	eventually(t, "the definition is updated", func() bool {
		now, err := e.dynamic.Resource(definitions).Get(t.Context(), crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return false
		}
		update.SetResourceVersion(now.GetResourceVersion())
		_, err = e.dynamic.Resource(definitions).Update(t.Context(), update, metav1.UpdateOptions{})
		return err == nil
	})
	for _, s := range leaving {
		eventually(t, "the version is gone", func() bool {
			_, err := s.View()
			return errors.Is(err, invalidation.ResourceGone)
		})
		assertGone(t, s)
	}
	e.createCustom(t, v1, "Version", namespace, "new", valueInSpec)
	for _, s := range staying {
		s.AwaitContents(t, e.contents(t, v1, namespace))
	}
	for _, s := range leaving {
		assertGone(t, s)
	}
}
