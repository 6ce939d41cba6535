package safestore

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// transformed is a rig whose store has transforms.
func transformed(t *testing.T, opts ...Option[*Map]) *rig {
	t.Helper()
	s, err := New(sourceOf(mapList("1")), Options{}, opts...)
	require.NoError(t, err)
	r := newRig(t)
	r.store.transforms = s.transforms
	return r
}

// C51: each object that is kept goes through the transforms once, in their order;
// an unchanged one that is listed again is not received anew.
func TestC51TransformOnce(t *testing.T) {
	var seen []string
	note := func(what string) Option[*Map] {
		return WithTransform(func(m *Map) (*Map, error) {
			seen = append(seen, what+" "+m.Name)
			return m, nil
		})
	}
	r := transformed(t, note("first"), note("second"))
	a := mapOf("A", "a", "1")
	r.publishSet(t, "1", a)
	require.NoError(t, r.Apply(watch.Modified, mapOf("A", "a", "2")))
	assert.Equal(t, []string{"first a", "second a", "first a", "second a"}, seen)

	seen = nil
	r.publishSet(t, "2", mapOf("A", "a", "2"))
	require.NoError(t, r.Apply(watch.Modified, mapOf("A", "a", "2")))
	require.NoError(t, r.Apply(watch.Deleted, mapOf("A", "a", "3")))
	assert.Empty(t, seen, "an unchanged object, a replay and a deletion are not kept")
}

func TestWithoutManagedFields(t *testing.T) {
	r := transformed(t, WithoutManagedFields[*Map]())
	a := mapOf("A", "a", "1")
	a.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "me"}}
	r.publishSet(t, "1", a)
	s, err := r.Snapshot()
	require.NoError(t, err)
	got, err := s.Get(Key(a))
	require.NoError(t, err)
	assert.Empty(t, got.ManagedFields)
}

// C50: what cannot be transformed is not passed over, and not shown.
func TestC50TransformThatFails(t *testing.T) {
	no := errors.New("no")
	for name, tc := range map[string]struct {
		transform func(*Map) (*Map, error)
		want      string
	}{
		"fails":           {func(*Map) (*Map, error) { return nil, no }, "*v1.ConfigMap A/b: transform: no"},
		"panics":          {func(m *Map) (*Map, error) { panic(m.UID) }, "*v1.ConfigMap A/b: transform: panic"},
		"returns nothing": {func(*Map) (*Map, error) { return nil, nil }, "*v1.ConfigMap A/b: transform: panic"},
		"renames": {func(m *Map) (*Map, error) { m.Name = "c"; return m, nil },
			"*v1.ConfigMap A/b: transform: it changed what the object is"},
		"changes the UID": {func(m *Map) (*Map, error) { m.UID = types.UID("other"); return m, nil },
			"*v1.ConfigMap A/b: transform: it changed what the object is"},
	} {
		t.Run(name, func(t *testing.T) {
			r := transformed(t, WithTransform(func(m *Map) (*Map, error) {
				if m.Name == "b" {
					return tc.transform(m)
				}
				return m, nil
			}))
			r.publishSet(t, "1", mapOf("A", "a", "1"))
			assert.EqualError(t, r.Apply(watch.Added, mapOf("A", "b", "2")), tc.want)
			s, err := r.Snapshot()
			require.NoError(t, err)
			assert.Equal(t, 1, s.Len())
			r.Begin()
			assert.EqualError(t, r.Build(watch.Added, mapOf("A", "b", "2")), tc.want)
		})
	}
}
