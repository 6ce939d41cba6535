package safestore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
)

// The server says no, or what it says cannot be used.

func TestC16RefusalsArePaced(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		heal := w.Break(wiretest.All, wiretest.Answer(forbidden()))
		w.run()
		require.ErrorIs(t, w.notReady(), invalidation.Forbidden, "known after the first answer")
		for failures := 1; time.Since(w.began) < time.Minute; failures++ {
			status := w.store.Status().Watch
			assert.Equal(t, failures, status.Failures)
			assert.Equal(t, failures, w.count(wiretest.All))
			assert.Equal(t, "waiting to retry", status.Phase)
			after(time.Until(status.NextAttempt))
		}
		// Pauses of at least 0.4, 0.8, 1.6, ... 12.8, 15, 15 seconds.
		assert.LessOrEqual(t, w.count(wiretest.All), 10)
		assert.EqualValues(t, 2, w.store.Token().Generation(), "the same refusal again ends no further generation")

		// Progress of the set alone does not reset the pauses: the next refusal does
		// not start them over.
		heal()
		w.readyAfter(0, 45*time.Second)
		w.Break(wiretest.All, wiretest.Answer(forbidden()))
		w.Cut()
		after(15 * time.Second)
		before := w.count(wiretest.All)
		after(time.Minute)
		assert.LessOrEqual(t, w.count(wiretest.All)-before, 5)
	})
}

func TestC18RefusalIsExplained(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Break(wiretest.All, wiretest.Together(wiretest.Answer(forbidden()), wiretest.Slow(100*time.Millisecond)))
		w.run()
		after(100 * time.Millisecond) // one round trip
		err := w.notReady()           // as every way to read says
		assert.EqualValues(t, 403, statusCode(t, err))
		assert.True(t, apierrors.IsForbidden(err))
		assert.ErrorIs(t, err, invalidation.Forbidden)
		assert.ErrorContains(t, err, `User "app" cannot list resource "configmaps"`)
		assert.Equal(t, token.Pending, w.store.Status().State)
		assert.ErrorContains(t, w.store.Status().Watch.LastError, "cannot list")
	})
}

func TestC19CredentialsAreRotated(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		after(time.Minute)
		heal := w.Break(wiretest.All, wiretest.Answer(apierrors.NewUnauthorized("token expired")))
		w.Cut()
		after(aMoment)
		err := w.notReady()
		assert.ErrorIs(t, err, invalidation.Unauthorized)
		assert.EqualValues(t, 401, statusCode(t, err))
		assert.ErrorIs(t, first.Cause(), invalidation.Unauthorized)
		stale, _ := w.store.Stale()
		assert.Nil(t, stale)
		after(time.Hour)
		heal()
		w.readyAfter(0, 45*time.Second)
		w.same()
		assert.Equal(t, []string{"ready 1", "revoked 1 Unauthorized", "ready 2"}, w.hooks())
	})
}

func TestC21RightIsWithdrawn(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		tok := w.ready()
		heal := w.Break(wiretest.All, wiretest.Answer(forbidden()))
		after(4 * time.Minute)
		w.same() // an open watch outlives the right, and follows
		after(6*time.Minute + time.Second)
		err := w.notReady()
		assert.ErrorIs(t, err, invalidation.Forbidden)
		assert.True(t, apierrors.IsForbidden(err))
		assert.ErrorIs(t, tok.Cause(), invalidation.Forbidden)
		old, _ := w.store.Stale()
		assert.Nil(t, old, "what may not be read is not kept")

		w.maps.Set(configMap("b", "1"))
		after(time.Hour)
		heal()
		w.readyAfter(0, 45*time.Second)
		w.same()
		assert.Equal(t, []string{"ready 1", "revoked 1 Forbidden", "ready 2"}, w.hooks())
	})
}

// The right to watch can be missing while that to list is there.
func TestC21RightToWatchAlone(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		heal := w.Break(wiretest.Watches, wiretest.Answer(forbidden()))
		w.run()
		for range 20 {
			after(time.Minute)
			assert.ErrorIs(t, w.notReady(), invalidation.Forbidden)
		}
		assert.Empty(t, w.hooks(), "no set is shown that cannot be followed")
		heal()
		w.readyAfter(0, 45*time.Second)
	})
}

func TestC23ResourceIsServedLater(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Remove(wiretest.ConfigMaps)
		w.run()
		for range 10 {
			err := w.notReady()
			assert.ErrorIs(t, err, invalidation.ResourceGone, "not: ready and empty")
			assert.ErrorContains(t, err, "could not find the requested resource")
			after(time.Minute)
		}
		w.Resource(wiretest.ConfigMaps)
		w.maps.Set(configMap("a", "1"))
		w.readyAfter(0, 45*time.Second)
		w.same()
	})
}

func TestC25ResourceIsDeletedAndCreatedAgain(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("old", "1"))
		w.ready()
		after(time.Minute)
		w.Remove(wiretest.ConfigMaps)
		after(aMoment)
		assert.ErrorIs(t, w.notReady(), invalidation.ResourceGone)
		old, _ := w.store.Stale()
		assert.Nil(t, old)
		before := w.count(wiretest.All)
		after(time.Hour)
		assert.LessOrEqual(t, w.count(wiretest.All)-before, 3600/15+6, "the pauses are long")
		assert.EqualValues(t, 2, w.store.Token().Generation(), "and one generation ended, once")

		w.Resource(wiretest.ConfigMaps)
		w.maps.Set(configMap("new", "1"))
		w.readyAfter(0, 45*time.Second)
		w.same()
		assert.Equal(t, []string{"ready 1", "revoked 1 ResourceGone", "ready 2"}, w.hooks())
	})
}

func TestMethodNotAllowed(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Break(wiretest.All, wiretest.Answer(apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "configmaps"}, "watch")))
		w.run()
		err := w.notReady()
		assert.ErrorIs(t, err, invalidation.Unsupported)
		assert.ErrorContains(t, err, "watch is not supported")
	})
}

// undecodable is a ConfigMap with a number where a map of strings belongs.
func undecodable(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": int64(5)}}
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

const decoderSays = "cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"

func TestC24UndecodableObject(t *testing.T) {
	for name, list := range map[string]bool{"WatchList": false, "LIST": true} {
		t.Run("in a "+name, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				if list {
					w.Break(wiretest.Initial, wiretest.Answer(wiretest.NoWatchList()))
				}
				w.maps.Set(configMap("a", "1"))
				w.maps.Set(undecodable("b"))
				w.run()
				for range 10 {
					err := w.notReady()
					assert.ErrorIs(t, err, invalidation.BadData)
					if !list {
						assert.ErrorContains(t, err, decoderSays)
					} else {
						assert.ErrorContains(t, err, "cannot unmarshal number into Go struct field ConfigMap.items.data of type map[string]string")
					}
					after(time.Minute)
				}
				w.maps.Set(configMap("b", "1"))
				w.readyAfter(0, 45*time.Second)
				w.same()
			})
		})
	}
	t.Run("in a watch", func(t *testing.T) {
		onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
			w.maps.Set(configMap("a", "1"))
			w.ready()
			w.maps.Set(undecodable("a"))
			err := w.notReady()
			assert.ErrorIs(t, err, invalidation.BadData)
			assert.ErrorContains(t, err, decoderSays)
			after(10 * time.Minute)
			assert.ErrorIs(t, w.notReady(), invalidation.BadData, "it is not skipped")
			w.maps.Delete("default", "a")
			w.readyAfter(0, 45*time.Second)
			w.same()
			assert.Equal(t, []string{"ready 1", "revoked 1 BadData", "ready 2"}, w.hooks())
		})
	})
}

func TestC50EventThatCannotBeApplied(t *testing.T) {
	other := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: "a"}
	for name, test := range map[string]struct {
		fault wiretest.Fault
		says  string
	}{
		"DELETED without metadata": {wiretest.WithoutMetadata(watch.Deleted), "no name"},
		"not an object":            {wiretest.EditEvents(replace(other)), "it has no metadata"},
		"a Table":                  {wiretest.AsTable, "Table"},
		"a Secret":                 {wiretest.EditEvents(replace(secret("a"))), "v1.Secret default/a: the store holds v1.ConfigMap"},
		"a kind nobody knows":      {wiretest.EditEvents(replace(unknownKind())), "is registered for version"},
		"of unknown type":          {wiretest.EditEvents(func(e *wiretest.Event) { e.Type = "REPLACED" }), "REPLACED"},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				w.maps.Set(configMap("b", "1"))
				heal := w.Break(wiretest.All, test.fault)
				if name == "DELETED without metadata" {
					w.ready()
				} else {
					heal()
					w.ready()
					after(time.Minute)
					w.Break(wiretest.First(1, wiretest.Watches), test.fault)
					w.End()
					after(0)
				}
				w.maps.Delete("default", "a")
				after(aMoment)
				err := w.notReady()
				assert.ErrorIs(t, err, invalidation.BadData)
				assert.ErrorContains(t, err, test.says)
				w.readyAfter(0, 45*time.Second)
				w.same()
				assert.Equal(t, []string{"ready 1", "revoked 1 BadData", "ready 2"}, w.hooks())
			})
		})
	}
}

// Objects of another type than the store's are noticed at the first answer.
func TestWrongTypeInList(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		store, err := safestore.New[*unstructured.Unstructured](w.source(), safestore.Options{})
		require.NoError(t, err)
		w.maps.Set(configMap("a", "1"))
		go store.Run(t.Context())
		after(0)
		_, err = store.Snapshot()
		assert.ErrorIs(t, err, invalidation.BadData)
		assert.ErrorContains(t, err, "v1.ConfigMap default/a: the store holds unstructured.Unstructured")
	})
}

func TestTableInPlaceOfList(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Break(wiretest.Initial, wiretest.Answer(wiretest.NoWatchList()))
		heal := w.Break(wiretest.Lists, wiretest.AsTable)
		w.run()
		assert.ErrorIs(t, w.notReady(), invalidation.BadData)
		heal()
		w.readyAfter(0, 45*time.Second)
	})
}
