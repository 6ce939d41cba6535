package safestore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// withUID returns an object with another identity than those of its name.
func withUID(obj *Map, uid types.UID) *Map {
	obj.UID = uid
	return obj
}

// A deletion that was waited for is not followed by the object: the store may not
// have heard of its creation yet, and then its absence means nothing.
func TestWaitForDeletionIsNotFollowedByTheObject(t *testing.T) {
	mine := withUID(mapOf("A", "a", "5"), "mine")
	for name, before := range map[string][]*Map{
		"nothing is there":         nil,
		"a predecessor is there":   {withUID(mapOf("A", "a", "1"), "predecessor")},
		"others are there":         {mapOf("A", "b", "1")},
		"it is there, and goes on": {withUID(mapOf("A", "a", "3"), "mine")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.publishSet(t, "3", before...)
				done := make(chan error, 1)
				go func() { done <- r.WaitForDeletion(t.Context(), mine) }()
				synctest.Wait()
				assert.Empty(t, done, "version 5 is still to come")
				r.Advance("4")
				synctest.Wait()
				assert.Empty(t, done)
				require.NoError(t, r.Apply(watch.Added, mine))
				synctest.Wait()
				assert.Empty(t, done, "it is there")
				require.NoError(t, r.Apply(watch.Deleted, withUID(mapOf("A", "a", "6"), "mine")))
				assert.NoError(t, <-done)
				_, err := r.Get(t.Context(), key("A", "a"))
				assert.True(t, apierrors.IsNotFound(err))
			})
		})
	}
}

func TestWaitForDeletionEndsWith(t *testing.T) {
	for name, tc := range map[string]struct {
		obj  *Map
		then func(*testing.T, *rig)
	}{
		"the version of the object, without it": {
			mapOf("A", "a", "5"), func(_ *testing.T, r *rig) { r.Advance("5") },
		},
		"a relist without it": {
			mapOf("A", "a", "5"), func(t *testing.T, r *rig) { r.publishSet(t, "9") },
		},
		"a successor": {
			withUID(mapOf("A", "a", "5"), "mine"),
			func(t *testing.T, r *rig) {
				require.NoError(t, r.Apply(watch.Added, withUID(mapOf("A", "a", "9"), "other")))
			},
		},
		"a proof, where versions do not compare": {
			mapOf("A", "a", "opaque"),
			func(_ *testing.T, r *rig) { r.Prove(watcher.Proof{AsOf: time.Now(), Number: 1}) },
		},
		"a proof, for an object without version": {
			mapOf("A", "a", ""),
			func(_ *testing.T, r *rig) { r.Prove(watcher.Proof{AsOf: time.Now(), Number: 1}) },
		},
		"having seen it go, where versions do not compare": {
			mapOf("A", "a", "opaque"),
			func(t *testing.T, r *rig) {
				require.NoError(t, r.Apply(watch.Added, mapOf("A", "a", "3")))
				synctest.Wait()
				require.NoError(t, r.Apply(watch.Deleted, mapOf("A", "a", "4")))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.publishSet(t, "2")
				done := make(chan error, 1)
				go func() { done <- r.WaitForDeletion(t.Context(), tc.obj) }()
				synctest.Wait()
				assert.Empty(t, done)
				tc.then(t, r)
				assert.NoError(t, <-done)
			})
		})
	}
}
