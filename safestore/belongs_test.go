package safestore

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// The type of a list is checked also if it is empty, and that of a bookmark.
func TestWhatBelongsToAStore(t *testing.T) {
	untypedList := func(kind string) runtime.Object {
		list := &unstructured.UnstructuredList{}
		list.SetKind(kind)
		return list
	}
	untyped := func(kind string) runtime.Object {
		bookmark := &unstructured.Unstructured{}
		bookmark.SetKind(kind)
		return bookmark
	}
	const pod, untypedAny, partial = "v1.Pod", "unstructured.Unstructured", "v1.PartialObjectMetadata"
	check := map[string]func(runtime.Object) error{
		pod: belongs[*corev1.Pod], untypedAny: belongs[*unstructured.Unstructured],
		partial: belongs[*metav1.PartialObjectMetadata], "interface": belongs[Object],
	}
	for name, tc := range map[string]struct {
		received runtime.Object
		accepted []string // of check, by name
	}{
		"a list of pods":                {&corev1.PodList{}, []string{pod}},
		"a list of others":              {&corev1.ConfigMapList{}, nil},
		"a list of metadata":            {&metav1.PartialObjectMetadataList{}, []string{partial}},
		"a list of anything":            {&corev1.List{}, []string{pod, untypedAny, partial}},
		"an internal list of anything":  {&metav1.List{}, []string{pod, untypedAny, partial}},
		"an untyped list of pods":       {untypedList("PodList"), []string{pod, untypedAny, partial}},
		"an untyped list, plural":       {untypedList("PodsList"), []string{pod, untypedAny, partial}},
		"an untyped list of others":     {untypedList("ConfigMapList"), []string{untypedAny, partial}},
		"an untyped list of anything":   {untypedList("List"), []string{pod, untypedAny, partial}},
		"an untyped list of no kind":    {untypedList(""), []string{pod, untypedAny, partial}},
		"an untyped list of a name":     {untypedList("PodCollection"), []string{pod, untypedAny, partial}},
		"a bookmark of pods":            {&corev1.Pod{}, []string{pod}},
		"a bookmark of others":          {&corev1.ConfigMap{}, nil},
		"a bookmark of metadata":        {&metav1.PartialObjectMetadata{}, []string{partial}},
		"an untyped bookmark of pods":   {untyped("Pod"), []string{pod, untypedAny, partial}},
		"an untyped bookmark of others": {untyped("ConfigMap"), []string{untypedAny, partial}},
		"an untyped bookmark, no kind":  {untyped(""), []string{pod, untypedAny, partial}},
	} {
		for of, belongs := range check {
			err := belongs(tc.received)
			if of == "interface" || slices.Contains(tc.accepted, of) {
				assert.NoError(t, err, "%s: %s", name, of)
			} else {
				assert.ErrorContains(t, err, ": the store holds "+of, "%s: %s", name, of)
			}
		}
	}
}

// An empty source of another type is never ready, and so never says NotFound.
func TestEmptySourceOfAnotherType(t *testing.T) {
	for name, bound := range map[string]time.Duration{"no bound": 0, "a bound": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New[*corev1.Secret](sourceOf(mapList("1")), Options{MaxStaleness: bound})
				require.NoError(t, err)
				s.OnReady(func(*token.Token) { t.Error("ready") })
				start(t, s)
				time.Sleep(time.Hour)
				_, err = s.Snapshot()
				assert.ErrorIs(t, err, invalidation.BadData)
				assert.ErrorContains(t, err, "*v1.ConfigMapList: the store holds v1.Secret")
			})
		})
	}
}

// A bookmark of another type says that the watch is of something else.
func TestBookmarkOfAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOf(mapList("1"))
		s := newStore(t, source)
		start(t, s)
		tok := readyToken(t, s)
		source.events <- watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}}
		<-tok.Context().Done()
		assert.ErrorIs(t, tok.Cause(), invalidation.BadData)
		assert.ErrorContains(t, tok.Cause(), "*v1.Pod: the store holds v1.ConfigMap")
	})
}
