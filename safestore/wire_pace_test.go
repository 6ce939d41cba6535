package safestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// A network that is lost for a while, or an overload, is no reason to give WatchLists up.
func TestWatchListIsNotGivenUp(t *testing.T) {
	for name, trouble := range map[string]func(*wire) (heal func()){
		"lost network": func(w *wire) func() {
			w.BlackHole(true)
			return func() { w.BlackHole(false) }
		},
		"overload": func(w *wire) func() { return w.Break(wiretest.All, wiretest.Answer(tooMany(1))) },
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				heal := trouble(w)
				w.run()
				after(15 * time.Second)
				heal()
				w.readyAfter(0, 2*time.Minute)
				before := w.count(wiretest.Initial)
				w.store.Revoke(w.store.Token(), nil)
				after(time.Minute)
				assert.Empty(t, w.store.Status().Watch.WatchListRefused)
				assert.Greater(t, w.count(wiretest.Initial), before)
			})
		})
	}
}

// Replicas that are asked for patience together do not come back together.
func TestC72RetryAfterIsSpread(t *testing.T) {
	const replicas = 50
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		var running sync.WaitGroup
		for range replicas {
			w.restart(safestore.Options{})
			store := w.store
			running.Go(func() { _ = store.Run(ctx) })
			w.readyAfter(0, 0)
		}
		after(20 * time.Second)
		w.Send(wiretest.ErrorEvent(tooMany(30)))
		after(time.Minute)
		cancel()
		running.Wait()
		moments := map[time.Time]int{}
		for _, r := range w.Requests(wiretest.Resumed) {
			moments[r.At]++
		}
		assert.Greater(t, len(moments), replicas/2)
	})
}

// A watch that brings something and ends at once, again and again, is not opened without
// end.
func TestWatchThatEndsAtOnce(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.ready()
		after(10 * time.Second)
		bookmark := wiretest.Frame(watch.Bookmark, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1001"},
		})
		w.Break(wiretest.Resumed, wiretest.Together(wiretest.Slow(5*time.Millisecond), wiretest.Script(false, bookmark)))
		w.End()
		after(time.Minute)
		assert.Less(t, w.count(wiretest.Resumed), 30)
	})
}

// failingSource is a WatchList of a large set that takes its time and fails at its end.
type failingSource struct{ asked *[]time.Time }

func (s failingSource) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.New("no lists")
}

func (s failingSource) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	*s.asked = append(*s.asked, time.Now())
	events := make(chan watch.Event)
	go func() {
		defer close(events)
		for i := range 13 {
			m := configMap(fmt.Sprint(i), "1")
			m.ResourceVersion = "1"
			if i == 12 {
				m.Name = "" // cannot be applied
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return
			}
			select {
			case events <- watch.Event{Type: watch.Added, Object: m}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return watch.NewProxyWatcher(events), nil
}

// C16: only a set that is complete, or an event, begins the backoff anew, not a WatchList
// that lasted and failed.
func TestC16FailedWatchListsBackOff(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		var asked []time.Time
		var err error
		w.store, err = safestore.New[*corev1.ConfigMap](failingSource{&asked}, safestore.Options{})
		require.NoError(t, err)
		w.run()
		after(10 * time.Minute)
		w.stop(nil)
		<-w.done
		assert.Less(t, len(asked), 25, "lists of everything")
		assert.Greater(t, len(asked), 5)
	})
}

// Who gives up on an attempt that got no answer asks for another connection, also before
// the first set.
func TestNoAnswerAsksForAnotherConnection(t *testing.T) {
	for name, test := range map[string]struct {
		which wiretest.Which
		ready bool // before
	}{
		"WatchList": {wiretest.Initial, false},
		"list":      {wiretest.Lists, false},
		"watch":     {wiretest.Resumed, true},
		"question":  {wiretest.Lists, true},
	} {
		t.Run(name, func(t *testing.T) {
			reconnects := 0
			opts := safestore.Options{MaxStaleness: 30 * time.Second, Watch: watcher.Options{Reconnect: func() { reconnects++ }}}
			onWire(t, opts, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				if name == "list" {
					w.onLists()
				}
				if test.ready {
					w.ready()
					after(10 * time.Second)
				}
				w.Break(test.which, wiretest.Hang)
				if !test.ready {
					w.run()
				} else if name == "watch" {
					w.End()
				}
				after(5 * time.Minute)
				assert.Positive(t, reconnects)
			})
		})
	}
}

// A watch that is never answered while lists are is no reason to show old objects, nor to
// show none for ever.
func TestWatchThatIsNeverAnswered(t *testing.T) {
	for _, bound := range []time.Duration{0, 10 * time.Second} {
		t.Run(bound.String(), func(t *testing.T) {
			onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				w.onLists()
				w.ready()
				after(10 * time.Second)
				w.Break(wiretest.Resumed, wiretest.Hang)
				w.End()
				w.maps.Set(configMap("a", "2"))
				after(2 * time.Minute)
				w.readyAfter(0, 2*time.Minute)
				w.same()
			})
		})
	}
}

// What a typed client's list cannot decode is not quoted.
func TestUndecodableTimeIsNotQuoted(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.onLists()
		w.Break(wiretest.Lists, wiretest.EditList(func(l *wiretest.List) {
			var m map[string]any
			if err := json.Unmarshal(l.Items[0], &m); err != nil {
				panic(err)
			}
			m["metadata"].(map[string]any)["creationTimestamp"] = "hunter2"
			l.Items[0], _ = json.Marshal(m)
		}))
		w.run()
		after(time.Minute)
		err := w.notReady()
		assert.NotContains(t, err.Error(), "hunter2")
		assert.ErrorIs(t, err, invalidation.BadData)
	})
}

// A relist that brings less than half of what there was is looked at twice.
func TestSetThatShrinksIsAudited(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		for i := range 10 {
			w.maps.Set(configMap(fmt.Sprint(i), "1"))
		}
		w.onLists()
		w.ready()
		w.store.OnReady(func(*token.Token) {
			if snapshot, err := w.store.Snapshot(); err == nil {
				assert.Equal(t, 10, snapshot.Len())
			}
		})
		w.Break(wiretest.First(1, ofSets), wiretest.EditList(func(l *wiretest.List) { l.Items = l.Items[:2] }))
		w.store.Revoke(w.store.Token(), nil)
		w.readyAfter(0, time.Minute)
		w.same()
	})
}
