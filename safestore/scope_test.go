package safestore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// saying is a source that says what it lists.
type saying struct {
	*scripted
	scope watcher.Scope
}

func (s saying) Scope() watcher.Scope { return s.scope }

// scopedRig is a rig whose source says what it lists.
func scopedRig(t *testing.T, said watcher.Scope) *rig {
	t.Helper()
	r := newRig(t)
	r.scope = scopeOf(saying{newScripted(), said})
	r.current.Store(r.noSet())
	return r
}

// assertOutOfScope checks that an answer is none: neither absent nor not ready.
func assertOutOfScope(t *testing.T, err error, want string) {
	t.Helper()
	assert.EqualError(t, err, want)
	assert.ErrorIs(t, err, ErrOutOfScope)
	assert.NotErrorIs(t, err, ErrNotReady)
	assert.False(t, apierrors.IsNotFound(err))
}

// Guarantee 12: what the source does not list is never said not to exist, whether
// the store holds something or nothing.
func TestKeysOutOfTheScope(t *testing.T) {
	one := watcher.Scope{Namespace: "A"}
	named := watcher.Scope{FieldSelector: "metadata.name=a"}
	others := watcher.Scope{FieldSelector: "metadata.namespace!=kube-system"}
	for name, tc := range map[string]struct {
		said watcher.Scope
		held []*Map
		key  types.NamespacedName
		want string // empty for NotFound
	}{
		"of the namespace":                 {one, nil, key("A", "b"), ""},
		"another namespace, nothing held":  {one, nil, key("B", "b"), `safestore: key "B/b" is out of the store's scope: namespace "A"`},
		"another namespace":                {one, []*Map{mapOf("A", "a", "1")}, key("B", "b"), `safestore: key "B/b" is out of the store's scope: namespace "A"`},
		"no namespace, nothing held":       {one, nil, key("", "b"), `safestore: key "b" without namespace is out of the store's scope: namespace "A"`},
		"of a field selector":              {named, nil, key("A", "a"), ""},
		"not of a field selector":          {named, nil, key("A", "b"), `safestore: key "A/b" is out of the store's scope: fields metadata.name=a`},
		"not excluded by a field selector": {others, nil, key("B", "b"), ""},
		"excluded by a field selector": {
			others, nil, key("kube-system", "b"),
			`safestore: key "kube-system/b" is out of the store's scope: fields metadata.namespace!=kube-system`,
		},
		"nothing said, nothing held":      {watcher.Scope{}, nil, key("", "b"), ""},
		"nothing said, another namespace": {watcher.Scope{}, []*Map{mapOf("A", "a", "1")}, key("B", "b"), ""},
		"nothing said, no namespace": {
			watcher.Scope{}, []*Map{mapOf("A", "a", "1")}, key("", "b"),
			`safestore: key "b" without namespace is out of the store's scope: its objects have namespaces`,
		},
		"nothing said, a namespace": {
			watcher.Scope{}, []*Map{mapOf("", "a", "1")}, key("A", "b"),
			`safestore: key "A/b" is out of the store's scope: its objects have no namespace`,
		},
		"nothing said, both kinds": {watcher.Scope{}, []*Map{mapOf("", "a", "1"), mapOf("A", "a", "1")}, key("", "b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := scopedRig(t, tc.said)
			r.publishSet(t, "1", tc.held...)
			for range 2 {
				s, err := r.Snapshot()
				require.NoError(t, err)
				_, fromSnapshot := s.Get(tc.key)
				_, fromStore := r.Get(t.Context(), tc.key)
				_, copied := r.GetDeepCopy(t.Context(), tc.key)
				for _, err := range []error{fromSnapshot, fromStore, copied} {
					if tc.want == "" {
						assert.True(t, apierrors.IsNotFound(err), "%v", err)
						assert.NotErrorIs(t, err, ErrOutOfScope)
					} else {
						assertOutOfScope(t, err, tc.want)
					}
				}
				// And no less after the data was dropped, and has come back.
				r.revokeFor(invalidation.NotAllowed, nil)
				r.publishSet(t, "2", tc.held...)
			}
		})
	}
}

// Guarantee 12, for lists: a namespace that is not listed is not an empty one.
func TestNamespacesOutOfTheScope(t *testing.T) {
	const foreign = `safestore: namespace "B" is out of the store's scope: namespace "A"`
	r := scopedRig(t, watcher.Scope{Namespace: "A"})
	r.publishSet(t, "1", mapOf("A", "a", "1"))
	s, err := r.Snapshot()
	require.NoError(t, err)
	for _, in := range []string{"", "A"} {
		assert.Len(t, listed(t, s, InNamespace(in)), 1)
	}
	list, err := r.List(t.Context(), InNamespace("B"))
	assert.Nil(t, list)
	assertOutOfScope(t, err, foreign)
	seq, err := s.Select(InNamespace("B"))
	assert.Nil(t, seq)
	assertOutOfScope(t, err, foreign)
	_, err = s.Count(InNamespace("B"))
	assertOutOfScope(t, err, foreign)
	for _, err := range r.Subscribe("x", InNamespace("B")).Changes(t.Context()) {
		assert.ErrorIs(t, err, ErrOutOfScope)
	}

	cluster := newRig(t)
	cluster.publishSet(t, "1", mapOf("", "a", "1"))
	_, err = cluster.List(t.Context(), InNamespace("A"))
	assertOutOfScope(t, err, `safestore: namespace "A" is out of the store's scope: its objects have no namespace`)
}

// Nobody waits for what the store will never show.
func TestWaitsOutOfTheScope(t *testing.T) {
	r := scopedRig(t, watcher.Scope{Namespace: "A"})
	r.publishSet(t, "1")
	foreign := mapOf("B", "b", "9")
	const want = `safestore: key "B/b" is out of the store's scope: namespace "A"`
	assertOutOfScope(t, r.WaitFor(t.Context(), foreign), want)
	assertOutOfScope(t, r.WaitForDeletion(t.Context(), foreign), want)
}

// A source that says one namespace and brings another is not believed.
func TestObjectsOutOfTheScope(t *testing.T) {
	const want = `*v1.ConfigMap B/b: the source lists namespace "A"`
	r := scopedRig(t, watcher.Scope{Namespace: "A"})
	r.Begin()
	assert.EqualError(t, r.Build(watch.Added, mapOf("B", "b", "1")), want)
	r.publishSet(t, "1", mapOf("A", "a", "1"))
	assert.EqualError(t, r.Apply(watch.Added, mapOf("B", "b", "2")), want)

	synctest.Test(t, func(t *testing.T) {
		source := watcher.InNamespace("A", sourceOf(mapList("1", mapOf("B", "b", "1"))))
		s := newStore(t, source)
		start(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := s.WaitReady(ctx)
		assert.ErrorIs(t, err, invalidation.BadData)
		assert.ErrorContains(t, err, want)
	})
}

// NotFound errors are what an API server answers, and say what was selected from.
func TestNotFoundIsAsFromTheServer(t *testing.T) {
	status := func(err error) metav1.Status {
		var api apierrors.APIStatus
		require.ErrorAs(t, err, &api)
		return api.Status()
	}
	r := newRig(t)
	r.publishSet(t, "1")
	for _, k := range []types.NamespacedName{key("A", "b"), key("", "b")} {
		_, err := r.Get(t.Context(), k)
		assert.EqualError(t, err, `configmaps "b" not found`)
		assert.Equal(t, "b", status(err).Details.Name)
		assert.Equal(t, "configmaps", status(err).Details.Kind)
	}

	selected := scopedRig(t, watcher.Scope{LabelSelector: "app=shop", FieldSelector: "spec.x=y"})
	selected.publishSet(t, "1")
	_, err := selected.Get(t.Context(), key("A", "b"))
	assert.EqualError(t, err, `configmaps "b" not found, of those selected by labels app=shop, fields spec.x=y`)
	assert.True(t, apierrors.IsNotFound(err))
	assert.Equal(t, "b", status(err).Details.Name)
}
