package safestore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// untyped returns a ConfigMap as a dynamic client does, with any kind of value.
func untyped(namespace, name, version string, value any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value},
	}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetResourceVersion(version)
	return u
}

func lenient(t *testing.T, opts ...Option[*Map]) *rig {
	t.Helper()
	r := newRig(t)
	r.lenient = true
	for _, opt := range opts {
		require.NoError(t, opt(r.store))
	}
	r.current.Store(r.noSet())
	return r
}

const badKey = "*v1.ConfigMap A/bad: field data.key cannot be decoded into v1.ConfigMap"

// C24: by default an object that cannot be decoded keeps the store from being
// ready, and is named with its field, but not its contents.
func TestC24Strict(t *testing.T) {
	r := newRig(t)
	r.Begin()
	require.NoError(t, r.Build(watch.Added, untyped("A", "good", "1", "text")))
	assert.EqualError(t, r.Build(watch.Added, untyped("A", "bad", "2", int64(12345))), badKey)

	r.Begin()
	require.NoError(t, r.Build(watch.Added, untyped("A", "good", "1", "text")))
	r.put(t, "3")
	got, err := r.Get(t.Context(), key("A", "good"))
	require.NoError(t, err)
	assert.Equal(t, "text", got.Data["key"])
	assert.EqualError(t, r.Apply(watch.Added, untyped("A", "bad", "4", int64(12345))), badKey)
}

// C24: a lenient store keeps the others, says so with each list that lacks one,
// and what is wrong with the one that is asked for.
func TestC24Lenient(t *testing.T) {
	for _, how := range []string{"listed", "watched"} {
		t.Run(how, func(t *testing.T) {
			r := lenient(t, WithIndex("name", func(m *Map) []string { return []string{m.Name} }))
			r.Begin()
			require.NoError(t, r.Build(watch.Added, untyped("A", "good", "1", "text")))
			require.NoError(t, r.Build(watch.Added, untyped("B", "good", "1", "text")))
			if how == "listed" {
				require.NoError(t, r.Build(watch.Added, untyped("A", "bad", "2", int64(1))))
				r.put(t, "2")
			} else {
				require.NoError(t, r.Build(watch.Added, untyped("A", "bad", "1", "as yet good")))
				r.put(t, "1")
				require.NoError(t, r.Apply(watch.Modified, untyped("A", "bad", "2", int64(1))))
			}

			_, err := r.Get(t.Context(), key("A", "bad"))
			var blame *BadObjectError
			require.ErrorAs(t, err, &blame)
			assert.Equal(t, key("A", "bad"), blame.Key)
			assert.EqualError(t, err, badKey)
			assert.False(t, apierrors.IsNotFound(err))
			assert.NotErrorIs(t, err, ErrNotReady)

			for name, tc := range map[string]struct {
				opts    []ListOption
				count   int
				partial bool
			}{
				"all":                 {nil, 2, true},
				"its namespace":       {[]ListOption{InNamespace("A")}, 1, true},
				"another namespace":   {[]ListOption{InNamespace("B")}, 1, false},
				"an index":            {[]ListOption{ByIndex("name", "good")}, 2, true},
				"an index it was in":  {[]ListOption{ByIndex("name", "bad")}, 0, true},
				"index and namespace": {[]ListOption{ByIndex("name", "good"), InNamespace("B")}, 1, false},
			} {
				list, err := r.List(t.Context(), tc.opts...)
				assert.Len(t, list, tc.count, name)
				assert.Equal(t, tc.partial, errors.Is(err, ErrPartial), "%s: %v", name, err)
				snapshot, err := r.Snapshot()
				require.NoError(t, err)
				count, err := snapshot.Count(tc.opts...)
				assert.Equal(t, tc.count, count, name)
				assert.Equal(t, tc.partial, errors.Is(err, ErrPartial), name)
				seq, err := snapshot.Select(tc.opts...)
				require.NotNil(t, seq, name)
				assert.Equal(t, tc.partial, errors.Is(err, ErrPartial), name)
			}
			_, err = r.List(t.Context())
			var partial *PartialError
			require.ErrorAs(t, err, &partial)
			assert.Len(t, partial.Bad, 1)
			assert.EqualError(t, err, "not all objects can be read: 1 cannot be kept, for example "+badKey)

			require.NoError(t, r.Apply(watch.Modified, untyped("A", "bad", "3", "mended")))
			got, err := r.Get(t.Context(), key("A", "bad"))
			require.NoError(t, err)
			assert.Equal(t, "mended", got.Data["key"])
			list, err := r.List(t.Context(), ByIndex("name", "bad"))
			require.NoError(t, err)
			assert.Len(t, list, 1)
		})
	}
}

// What is in quarantine exists: it is deleted, replayed, audited and waited for
// like any other.
func TestC24QuarantinedObjectsExist(t *testing.T) {
	r := lenient(t)
	r.Begin()
	require.NoError(t, r.Build(watch.Added, untyped("A", "bad", "2", int64(1))))
	r.put(t, "2")

	require.NoError(t, r.Apply(watch.Modified, untyped("A", "bad", "1", "from before")))
	_, err := r.Get(t.Context(), key("A", "bad"))
	assert.EqualError(t, err, badKey, "an event from before it was bad is no news")

	r.BeginAudit()
	require.NoError(t, r.Audit(untyped("A", "bad", "2", nil)))
	_, err = r.Compare("2", "2")
	assert.NoError(t, err, "the server has it too")
	r.BeginAudit()
	_, err = r.Compare("2", "2")
	assert.ErrorContains(t, err, "A/bad is gone from the server")
	r.EndAudit()

	assert.ErrorIs(t, r.WaitForDeletion(over(), untyped("A", "bad", "2", nil)), ErrNotReady, "it is not gone")
	require.NoError(t, r.Apply(watch.Deleted, untyped("A", "bad", "3", int64(1))))
	_, err = r.Get(t.Context(), key("A", "bad"))
	assert.True(t, apierrors.IsNotFound(err))
	_, err = r.List(t.Context())
	assert.NoError(t, err)
	assert.NoError(t, r.WaitForDeletion(t.Context(), untyped("A", "bad", "2", nil)))
}

// Transforms and index functions that fail on an object are no better than one
// that cannot be decoded. What they fail with is no answer about the object.
func TestC24LenientTransformAndIndex(t *testing.T) {
	r := lenient(t,
		WithTransform(func(m *Map) (*Map, error) {
			if m.Name == "transform" {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n")
			}
			return m, nil
		}),
		WithIndex("first", func(m *Map) []string { return []string{"all"} }),
		WithIndex("second", func(m *Map) []string {
			if m.Name == "index" {
				panic(m.Data)
			}
			return nil
		}))
	r.Begin()
	for _, name := range []string{"good", "transform", "index"} {
		require.NoError(t, r.Build(watch.Added, mapOf("A", name, "1")))
	}
	r.put(t, "1")
	list, err := r.List(t.Context(), ByIndex("first", "all"))
	assert.ErrorIs(t, err, ErrPartial)
	assert.Len(t, list, 1, "an object is in all of its indexes, or in none")
	_, err = r.Get(t.Context(), key("A", "index"))
	assert.EqualError(t, err, `*v1.ConfigMap A/index: index "second": panic`)
	_, err = r.Get(t.Context(), key("A", "transform"))
	assert.EqualError(t, err, `*v1.ConfigMap A/transform: transform: nodes "n" not found`)
	assert.False(t, apierrors.IsNotFound(err), "the object exists")
}

// Objects of another kind are no bad objects: the source is the wrong one.
func TestDynamicSourceOfAnotherKind(t *testing.T) {
	for _, mode := range []string{"strict", "lenient"} {
		r := newRig(t)
		r.lenient = mode == "lenient"
		r.Begin()
		other := untyped("A", "a", "1", "text")
		other.SetKind("Secret")
		err := r.Build(watch.Added, other)
		assert.EqualError(t, err, "*unstructured.Unstructured A/a: the store holds v1.ConfigMap", mode)
	}
}

// The error of an object that cannot be decoded has the path of a field that
// cannot be decoded by itself.
func TestC24Culprit(t *testing.T) {
	pod := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"a/b": "c"}}, "spec": spec,
		}}
	}
	containers := func(more map[string]any) []any {
		return []any{map[string]any{"name": "first"}, more}
	}
	for want, obj := range map[string]*unstructured.Unstructured{
		"spec.containers[1].ports": pod(map[string]any{"containers": containers(map[string]any{"ports": "none"})}),
		"spec.containers[1].resources.limits.cpu": pod(map[string]any{"containers": containers(map[string]any{
			"resources": map[string]any{"limits": map[string]any{"cpu": "a secret"}},
		})}),
		"spec.nodeSelector[a/b]":             pod(map[string]any{"nodeSelector": map[string]any{"a/b": int64(1)}}),
		"metadata.creationTimestamp":         withCreation(pod(nil), "a secret"),
		"spec.activeDeadlineSeconds":         pod(map[string]any{"activeDeadlineSeconds": "a secret"}),
		"spec.terminationGracePeriodSeconds": pod(map[string]any{"terminationGracePeriodSeconds": []any{"a secret"}}),
	} {
		_, err := convert[*corev1.Pod](obj)
		assert.EqualError(t, err, fmt.Sprintf("field %s cannot be decoded into v1.Pod", want))
	}
	_, err := convert[*corev1.Pod](pod(map[string]any{"nodeName": "n"}))
	assert.NoError(t, err)
}

func withCreation(u *unstructured.Unstructured, value any) *unstructured.Unstructured {
	u.Object["metadata"].(map[string]any)["creationTimestamp"] = value
	return u
}

// A metadata store can be fed by a dynamic client too.
func TestConvertToMetadata(t *testing.T) {
	got, err := convert[*metav1.PartialObjectMetadata](untyped("A", "a", "1", int64(1)))
	require.NoError(t, err)
	assert.Equal(t, "ConfigMap A/a", got.Kind+" "+Key(got).String())
	assert.True(t, convertible[*metav1.PartialObjectMetadata]("ConfigMap"))
	assert.False(t, convertible[*corev1.Pod]("ConfigMap"))
	assert.False(t, convertible[Object]("ConfigMap"), "any object is one already")
}

func FuzzConvertNeverQuotes(f *testing.F) {
	f.Add("creationTimestamp", "1", true)
	f.Fuzz(func(t *testing.T, field, value string, nested bool) {
		u := untyped("A", "a", "1", "text")
		if nested {
			u.Object["metadata"].(map[string]any)[field] = "needle " + value
		} else {
			u.Object[field] = "needle " + value
		}
		if _, err := convert[*corev1.ConfigMap](u); err != nil {
			assert.NotContains(t, err.Error(), "needle")
		}
	})
}
