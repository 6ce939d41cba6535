package safestore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// lateSource brings what comes from watches later and later, as a connection that carries
// less than is written. Lists are what they are.
type lateSource struct {
	watcher.Source
	by *atomic.Int64 // nanoseconds
}

func (s lateSource) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.Source.WatchWithContext(ctx, opts)
	if err != nil {
		return nil, err
	}
	type timed struct {
		watch.Event
		due time.Time
	}
	queue, out := make(chan timed, 10_000), make(chan watch.Event)
	go func() {
		defer close(queue)
		for e := range stream.ResultChan() {
			queue <- timed{e, time.Now().Add(time.Duration(s.by.Load()))}
		}
	}()
	go func() {
		defer close(out)
		for e := range queue {
			time.Sleep(time.Until(e.due))
			select {
			case out <- e.Event:
			case <-ctx.Done():
				stream.Stop()
				for range queue { // until the stream is closed
				}
				return
			}
		}
	}()
	return lateStream{stream, out}, nil
}

type lateStream struct {
	watch.Interface
	out chan watch.Event
}

func (s lateStream) ResultChan() <-chan watch.Event { return s.out }

// A stream that falls behind is not proven by an audit that passes over what was changed
// meanwhile (guarantee 4): no read that succeeds misses a commit from before its bound.
func TestLateStreamIsNotProven(t *testing.T) {
	for name, test := range map[string]struct {
		bound     time.Duration
		bookmarks bool
	}{
		"tight bound":                     {5 * time.Second, true},
		"bound of 10 s, no bookmarks":     {10 * time.Second, false},
		"bound of 20 s, no bookmarks":     {20 * time.Second, false},
		"bound of 20 s, bookmarks":        {20 * time.Second, true},
		"bound of 30 s, bookmarks":        {30 * time.Second, true},
		"bound of 2 s, the least allowed": {2 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			opts := safestore.Options{MaxStaleness: test.bound}
			onWire(t, opts, func(t *testing.T, w *wire) {
				var by atomic.Int64
				var err error
				w.store, err = safestore.New[*corev1.ConfigMap](lateSource{w.source(), &by}, opts)
				require.NoError(t, err)
				if !test.bookmarks {
					w.Break(wiretest.Watches, wiretest.NoBookmarks)
				}
				w.maps.Set(configMap("a", "0"))
				w.ready()
				var committed []time.Time // by value
				for i := range 3000 {     // five minutes
					by.Add(int64(10 * time.Millisecond)) // a tenth more is written than is carried
					w.maps.Set(configMap("a", strconv.Itoa(i)))
					committed = append(committed, time.Now())
					after(100 * time.Millisecond)
					snapshot, err := w.store.Snapshot()
					if err != nil {
						continue
					}
					m, err := snapshot.Get(named("a"))
					require.NoError(t, err)
					value, err := strconv.Atoi(m.Data["key"])
					require.NoError(t, err)
					if value+1 < len(committed) { // the first commit that the read does not reflect
						require.LessOrEqual(t, time.Since(committed[value+1]), test.bound, "a read at %v", time.Since(w.began))
					}
				}
				w.stop(nil)
				after(10 * time.Minute) // what is on its way arrives
			})
		})
	}
}

// deletedAsLast has deletions sent with the version that the object had last, as some
// servers do.
func deletedAsLast(versions map[string]string) wiretest.Fault {
	return wiretest.EditEvents(func(e *wiretest.Event) {
		if e.Type != watch.Deleted {
			return
		}
		var m corev1.ConfigMap
		if err := json.Unmarshal(e.Object, &m); err != nil {
			panic(err)
		}
		m.ResourceVersion = versions[m.Name]
		e.Object, _ = json.Marshal(&m)
	})
}

// C36: the version of the set does not go back with such a deletion, so that a healthy
// server is not taken for a rewound one.
func TestC36DeletionAsItWasLastTakesNothingBack(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Break(wiretest.Watches, deletedAsLast(map[string]string{"a": "1001", "b": "1002"}))
		w.maps.Set(configMap("a", "1")) // 1001
		w.ready()
		w.maps.Set(configMap("b", "1")) // 1002
		w.maps.Set(configMap("c", "1")) // 1003
		w.maps.Delete("default", "b")   // 1004, sent as 1002
		w.maps.Delete("default", "a")   // 1005, sent as 1001
		after(2 * time.Second)
		w.same()
		w.End()
		after(time.Minute)
		assert.Equal(t, []string{"ready 1"}, w.hooks())
		assert.Equal(t, "1003", w.Requests(wiretest.Resumed)[0].Options.ResourceVersion)
	})
}

// A proof's second watch brings such a deletion, which the stuck stream does not: it is not
// passed over for its low version (guarantee 4).
func TestC36ProofDoesNotPassOverADeletion(t *testing.T) {
	for _, bound := range []time.Duration{0, 10 * time.Second, 30 * time.Second} {
		t.Run(bound.String(), func(t *testing.T) {
			onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
				w.Break(wiretest.Watches, deletedAsLast(map[string]string{"a": "1001"}))
				w.maps.Set(configMap("a", "1")) // 1001
				w.maps.Set(configMap("b", "1")) // 1002
				first := w.ready()
				w.Stall()
				w.maps.Delete("default", "a") // 1003, sent as 1001
				w.ended(first, 90*time.Second)
				w.readyAfter(0, time.Minute)
				w.same()
			})
		})
	}
}

// A second watch, served by another replica, has proven a version that the main stream's
// replica has not reached. Its next, lower, bookmark is no rewind.
func TestBookmarkOfASlowerReplica(t *testing.T) {
	for _, bound := range []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				w.Break(wiretest.First(1, wiretest.Initial), wiretest.Lag(1001))
				first := w.ready()
				for range 300 {
					after(time.Second)
					w.Skip(1)
				}
				assert.Same(t, first, w.store.Token(), "nothing has changed, and every proof succeeded: %v", w.hooks())
			})
		})
	}
}
