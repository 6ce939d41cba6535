package safestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// C52: the server's watch cache loses an event, and its lists are right. No stream
// will ever tell; the audit finds it within its interval.
func TestC52AuditFindsWhatTheServersCacheLost(t *testing.T) {
	for _, lost := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		t.Run(string(lost), func(t *testing.T) {
			opts := watchOptions(watcher.Options{AuditInterval: 10 * time.Minute, PageSize: 2})
			onWire(t, opts, func(t *testing.T, w *wire) {
				for i := range 5 {
					w.maps.Set(configMap(fmt.Sprint(i), "1"))
				}
				first := w.ready()
				w.Break(wiretest.All, wiretest.Forget(1, lost))
				w.End()
				after(5 * time.Second) // the watch is open again
				switch lost {
				case watch.Added:
					w.maps.Set(configMap("new", "1"))
				case watch.Modified:
					w.maps.Set(configMap("0", "2"))
				case watch.Deleted:
					w.maps.Delete("default", "0")
				}
				w.over(first, invalidation.Diverged, 0, 10*time.Minute+5*time.Second)
				assert.ErrorContains(t, first.Cause(), "1 of ")
				w.readyAfter(0, 5*time.Second)
				w.same()
			})
		})
	}
}

// A set that is right passes every audit, also while it changes.
func TestAuditOfARightSet(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy=%v", busy), func(t *testing.T) {
			opts := watchOptions(watcher.Options{AuditInterval: 10 * time.Second, PageSize: 3})
			onWire(t, opts, func(t *testing.T, w *wire) {
				w.Break(wiretest.Lists, wiretest.Slow(200*time.Millisecond))
				for i := range 10 {
					w.maps.Set(configMap(fmt.Sprint(i), "1"))
				}
				first := w.ready()
				for i := range 6000 {
					after(100 * time.Millisecond)
					switch {
					case busy && i%20 == 10:
						w.maps.Delete("default", fmt.Sprint(i/20%10))
					case busy:
						w.maps.Set(configMap(fmt.Sprint(i/20%10), fmt.Sprint(i)))
					}
				}
				assert.Same(t, first, w.store.Token())
				assert.GreaterOrEqual(t, w.count(wiretest.Lists), 110, "about one in ten seconds, in two pages and more")
				w.same()
			})
		})
	}
}

// The audit may go through a metadata client, which is all it needs.
func TestAuditSource(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		client, err := metadata.NewForConfig(w.Config())
		require.NoError(t, err)
		opts := watchOptions(watcher.Options{
			AuditInterval: time.Minute,
			AuditSource:   watcher.ListWatch(client.Resource(wiretest.ConfigMaps.GroupVersionResource)),
		})
		w.restart(opts)
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		w.Break(wiretest.All, wiretest.Forget(1, watch.Modified))
		w.End()
		after(5 * time.Second) // the watch is open again
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Diverged, 0, time.Minute+5*time.Second)
	})
}

// A server without bookmarks that has other things to do: what a second watch
// cannot prove, an audit does.
func TestAuditStandsInForBookmarks(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 20 * time.Second}, func(t *testing.T, w *wire) {
		w.Break(wiretest.Watches, wiretest.NoBookmarks)
		w.maps.Set(configMap("a", "1"))
		first := w.ready()
		for range 600 {
			after(time.Second)
			w.Skip(1)
			_, err := w.store.Snapshot()
			require.NoError(t, err)
		}
		assert.Same(t, first, w.store.Token())
		w.Stall()
		w.maps.Set(configMap("a", "2"))
		w.over(first, invalidation.Stuck, 0, 20*time.Second)
		w.readyAfter(0, 10*time.Second)
		w.same()
	})
}
