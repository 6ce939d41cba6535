package safestore_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// bareMarker takes the resource version from the marker of a WatchList.
var bareMarker = wiretest.EditEvents(func(e *wiretest.Event) {
	if e.Type != watch.Bookmark {
		return
	}
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.Object, &m); err == nil && m.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		m.ResourceVersion = ""
		e.Object, _ = json.Marshal(m)
	}
})

// C67: a WatchList without the objects there are, or with a marker that brings no version,
// is never believed, not for a moment.
func TestC67MarkerAlone(t *testing.T) {
	alone := wiretest.Forget(100, watch.Added)
	withoutVersion := func(l *wiretest.List) { l.Metadata.ResourceVersion = "" }
	for name, faults := range map[string]struct{ stream, list wiretest.Fault }{
		"marker alone":                   {alone, nil},
		"marker without version":         {bareMarker, nil},
		"marker alone, without version":  {wiretest.Together(alone, bareMarker), nil},
		"the list has no version either": {wiretest.Together(alone, bareMarker), wiretest.EditList(withoutVersion)},
	} {
		for _, bound := range []time.Duration{0, 5 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprint(name, bound), func(t *testing.T) {
				onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
					w.maps.Set(configMap("a", "1"))
					w.maps.Set(configMap("b", "1"))
					w.Break(wiretest.Initial, faults.stream)
					if faults.list != nil {
						w.Break(wiretest.Lists, faults.list)
					}
					w.store.OnReady(func(tok *token.Token) {
						snapshot, err := w.store.Snapshot()
						assert.True(t, err != nil || snapshot.Len() == 2, "ready and empty")
					})
					w.run()
					w.readyAfter(0, 10*time.Second)
					for range 600 {
						after(time.Second)
						if snapshot, err := w.store.Snapshot(); err == nil {
							require.Equal(t, 2, snapshot.Len())
						}
					}
				})
			})
		}
	}
}

// A list that says that more remains, and not how to get it, is no complete list.
func TestMoreRemainsWithoutAToken(t *testing.T) {
	onWire(t, watchOptions(watcher.Options{PageSize: 2}), func(t *testing.T, w *wire) {
		for i := range 6 {
			w.maps.Set(configMap(fmt.Sprint(i), "1"))
		}
		w.onLists()
		heal := w.Break(wiretest.Lists, wiretest.EditList(func(l *wiretest.List) { l.Metadata.Continue = "" }))
		w.run()
		after(time.Minute)
		err := w.notReady()
		assert.ErrorIs(t, err, invalidation.BadData)
		assert.ErrorContains(t, err, "more objects remain")
		heal()
		w.readyAfter(0, time.Minute)
		w.same()
	})
}

// The first thing that is believed after a cut is a proof, since another server may answer:
// here one with other objects, behind the same address.
func TestAnotherClusterBehindTheAddress(t *testing.T) {
	for _, bound := range []time.Duration{0, 10 * time.Second, time.Minute} {
		for _, further := range []bool{false, true} {
			t.Run(fmt.Sprint(bound, further), func(t *testing.T) {
				onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
					restore := w.Backup()
					w.maps.Set(configMap("a", "1"))
					w.maps.Set(configMap("b", "1"))
					first := w.ready()
					after(10 * time.Second)
					restore()
					w.maps.Set(configMap("other", "1"))
					if further {
						w.Skip(100)
					}
					w.Cut()
					w.ended(first, 5*time.Second)
					w.readyAfter(0, 30*time.Second)
					w.same()
				})
			})
		}
	}
}

// C28: a server that was rewound and has overtaken the store's version before it was asked
// cannot be told by versions. An audit finds what the store has and the server has not.
func TestC28AuditOfAServerThatHasOvertaken(t *testing.T) {
	onWire(t, watchOptions(watcher.Options{AuditInterval: time.Minute}), func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "backed up"))
		w.maps.Set(configMap("b", "backed up"))
		first := w.ready()
		restore := w.Backup()
		w.maps.Set(configMap("b", "lost"))
		after(10 * time.Second)
		restore()
		w.Skip(100)
		w.over(first, invalidation.Diverged, 0, 2*time.Minute)
		w.readyAfter(0, time.Minute)
		w.same()
	})
}

// The object in the answer to a proof's question is looked for in the set: a stream that
// has lost it does not make up for that with bookmarks.
func TestProofLooksAtWhatItGot(t *testing.T) {
	for _, bound := range []time.Duration{10 * time.Second, 30 * time.Second} {
		t.Run(bound.String(), func(t *testing.T) {
			onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("b", "1"))
				first := w.ready()
				w.Break(wiretest.Watches, wiretest.Forget(1, watch.Added))
				w.End() // the next watch loses an event
				after(2 * time.Second)
				w.maps.Set(configMap("a", "1")) // it comes first in lists
				w.ended(first, bound)
				w.readyAfter(0, time.Minute)
				w.same()
			})
		})
	}
}
