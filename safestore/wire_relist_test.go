package safestore_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// The set is listed again, because nothing else can bring it up to date.

var expired = apierrors.NewResourceExpired("too old resource version")

// onLists makes the store list, in pages, in place of streaming.
func (w *wire) onLists() {
	w.Break(wiretest.Initial, wiretest.Answer(wiretest.NoWatchList()))
}

func TestC31ContinueTokenExpires(t *testing.T) {
	for name, test := range map[string]struct {
		times int
		pages int // asked for in all
	}{
		"never":                        {0, 3},
		"twice, then in pages":         {2, 2 + 2 + 3},
		"always, then all in one page": {1000, 2 + 2 + 2 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, watchOptions(watcher.Options{PageSize: 2}), func(t *testing.T, w *wire) {
				for i := range 6 {
					w.maps.Set(configMap(fmt.Sprint(i), "1"))
				}
				w.onLists()
				w.Break(wiretest.First(test.times, wiretest.Later), wiretest.Answer(expired))
				w.ready()
				w.same()
				assert.Equal(t, []string{"ready 1"}, w.hooks(), "ready once, one swap")
				assert.Equal(t, test.pages, w.count(wiretest.Lists))
			})
		})
	}
}

// Real compaction: the token of page one is no longer good when page two is asked
// for, and the set has changed meanwhile.
func TestC31CompactedWhileListing(t *testing.T) {
	onWire(t, watchOptions(watcher.Options{PageSize: 2}), func(t *testing.T, w *wire) {
		for i := range 6 {
			w.maps.Set(configMap(fmt.Sprint(i), "1"))
		}
		w.onLists()
		w.Break(wiretest.First(1, wiretest.Later), wiretest.Slow(time.Second))
		w.run()
		w.maps.Delete("default", "0")
		w.maps.Set(configMap("new", "1"))
		w.Compact()
		w.readyAfter(time.Second, time.Second)
		w.same()
	})
}

func TestC31PagesOfTwoVersions(t *testing.T) {
	other := wiretest.EditList(func(l *wiretest.List) { l.Metadata.ResourceVersion += "9" })
	onWire(t, watchOptions(watcher.Options{PageSize: 2}), func(t *testing.T, w *wire) {
		for i := range 6 {
			w.maps.Set(configMap(fmt.Sprint(i), "1"))
		}
		w.onLists()
		w.Break(wiretest.First(1, wiretest.Later), other)
		w.ready()
		w.same()
		assert.Equal(t, 2+3, w.count(wiretest.Lists), "begun again, not merged")
	})
}

// ofSets are the lists that are no question of a proof.
func ofSets(r wiretest.Request) bool { return wiretest.Lists(r) && r.Options.Limit != 1 }

// The dresses of a 410, all of which mean that the version is gone.
func TestC32Expired(t *testing.T) {
	from := func(r wiretest.Request) bool {
		return wiretest.Resumed(r) && r.Options.ResourceVersion == "1002"
	}
	for name, test := range map[string]struct {
		fault  wiretest.Fault
		within time.Duration
		sent   int // how often the version may be sent after the fault
	}{
		"in the stream":                 {wiretest.Script(false, wiretest.ErrorEvent(expired)), 1200 * time.Millisecond, 1},
		"Gone, as of old":               {wiretest.Script(false, wiretest.ErrorEvent(gone())), 1200 * time.Millisecond, 1},
		"as HTTP status":                {wiretest.Answer(expired), 1200 * time.Millisecond, 1},
		"without kind":                  {wiretest.Script(false, wiretest.Frame(watch.Error, map[string]any{"code": 410, "reason": "Expired"})), 1200 * time.Millisecond, 1},
		"closed at once, nothing in it": {wiretest.Respond(http.StatusOK, nil, ""), 10 * time.Second, 3},
		"a Status as object":            {wiretest.Script(false, wiretest.Frame(watch.Modified, status(expired))), 1200 * time.Millisecond, 1},
		"too large, since 1.18.6":       {wiretest.Answer(tooLarge("since 1.18.6")), 1200 * time.Millisecond, 1},
		"too large, since 1.17":         {wiretest.Answer(tooLarge("since 1.17")), 1200 * time.Millisecond, 1},
		"too large, before":             {wiretest.Answer(tooLarge("before")), 1200 * time.Millisecond, 1},
		"too large, in the stream":      {wiretest.Script(false, wiretest.ErrorEvent(tooLarge("since 1.18.6"))), 1200 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				w.maps.Set(configMap("b", "1"))
				first := w.ready()
				after(time.Minute)
				w.Break(from, test.fault)
				lists := w.count(wiretest.Initial)
				w.End()
				w.ended(first, time.Hour)
				reason := invalidation.Relist
				switch name {
				case "without kind", "a Status as object":
					reason = invalidation.BadData
				}
				assert.ErrorIs(t, first.Cause(), reason)
				w.readyAfter(0, test.within)
				w.same()
				assert.Equal(t, test.sent, w.count(from))
				assert.Equal(t, lists+1, w.count(wiretest.Initial))
				assert.Equal(t, []string{"ready 1", "revoked 1 " + string(reason), "ready 2"}, w.hooks())
			})
		})
	}
}

func TestC32RealCompaction(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.maps.Set(configMap("b", "1"))
		w.ready()
		w.Down()
		w.maps.Delete("default", "a")
		w.maps.Set(configMap("c", "1"))
		w.Compact()
		after(10 * time.Second)
		w.Up()
		after(time.Minute)
		w.same()
		assert.Equal(t, []string{"ready 1", "revoked 1 Relist", "ready 2"}, w.hooks())
	})
}

// A relist is never seen half done. Every reader sees all of the old set, or all
// of the new one, or an error.
func TestC34RelistIsOneSwap(t *testing.T) {
	const objects, pages = 2000, 20
	patient := func(o invalidation.Observation) invalidation.Decision {
		d := invalidation.Default(o)
		if o.Seen == invalidation.VersionExpired {
			d.Revoke = "" // keep the token through the relist
		}
		return d
	}
	for name, test := range map[string]struct {
		policy invalidation.Policy
		gap    bool
	}{
		"reads fail meanwhile": {nil, true},
		"without a gap":        {patient, false},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, watchOptions(watcher.Options{PageSize: objects / pages, Policy: test.policy}), func(t *testing.T, w *wire) {
				set := func(value string) {
					for i := range objects {
						w.maps.Set(configMap(fmt.Sprint(i), value))
					}
				}
				set("old")
				w.onLists()
				w.ready()
				w.Break(wiretest.Lists, wiretest.Slow(time.Second))
				lists := w.count(ofSets)
				w.Stall() // the changes do not come by the watch
				set("new")
				w.Compact()

				stop := make(chan struct{})
				var readers sync.WaitGroup
				var mu sync.Mutex
				seen := map[string]int{}
				for i := range 8 {
					readers.Go(func() {
						for {
							select {
							case <-stop:
								return
							case <-time.After(time.Second + time.Duration(i)*time.Millisecond):
							}
							kind := "none"
							if snapshot, err := w.store.Snapshot(); err == nil {
								values := map[string]int{}
								for _, m := range snapshot.All() {
									values[m.Data["key"]]++
								}
								if len(values) != 1 || values["old"]+values["new"] != objects {
									t.Errorf("a mix was seen: %v", values)
								}
								for kind = range values {
								}
							}
							mu.Lock()
							seen[kind]++
							mu.Unlock()
						}
					})
				}
				w.Cut()
				after(25 * time.Second)
				close(stop)
				readers.Wait()
				w.same()
				assert.Equal(t, pages, w.count(ofSets)-lists)
				assert.Equal(t, test.gap, seen["none"] > 0, "reads that failed: %v", seen)
				assert.NotZero(t, seen["new"])
				if !test.gap {
					assert.NotZero(t, seen["old"])
				}
				assert.Equal(t, []string{"ready 1", "revoked 1 Relist", "ready 2"}, w.hooks())
			})
		})
	}
}

func TestC36RelistInventsNothing(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.maps.Set(configMap("b", "1"))
		first := w.ready()
		before, err := w.store.Snapshot()
		require.NoError(t, err)
		require.True(t, w.store.Revoke(first, nil))
		w.readyAfter(0, 0)
		w.maps.Set(configMap("b", "2"))
		after(0)
		now, err := w.store.Snapshot()
		require.NoError(t, err)
		for name, same := range map[string]bool{"a": true, "b": false} {
			old, err := before.Get(named(name))
			require.NoError(t, err)
			obj, err := now.Get(named(name))
			require.NoError(t, err)
			assert.Equal(t, same, old == obj, "%s is the very same object", name)
		}
	})
}

// The version to resume from is the set's, not an item's; what is replayed from
// before is passed over; a deletion at the version of the object is one.
func TestC36ResumesFromTheSet(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		w.maps.Set(configMap("b", "1"))
		w.Skip(100)
		w.onLists()
		w.ready()
		watches := w.Requests(wiretest.Resumed)
		assert.Equal(t, "1102", watches[len(watches)-1].Options.ResourceVersion)

		// A server that sends again what was there before.
		tok := w.store.Token()
		w.maps.Set(configMap("a", "2")) // 1103
		after(0)
		w.Send(
			wiretest.Frame(watch.Modified, versioned("a", "1001")),
			wiretest.Frame(watch.Deleted, versioned("a", "1001")),
			wiretest.Frame(watch.Added, versioned("b", "1002")),
		)
		after(0)
		w.same()
		assert.Same(t, tok, w.store.Token())
		w.Send(wiretest.Frame(watch.Deleted, versioned("a", "1103")))
		after(0)
		_, err := w.store.Get(t.Context(), named("a"))
		assert.True(t, apierrors.IsNotFound(err), err)
	})
}

// A bookmark moves the version, so that a watch of a quiet collection can be
// resumed although everything before is compacted.
func TestBookmarkMovesTheVersion(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("a", "1"))
		tok := w.ready()
		w.Skip(1000)
		after(time.Minute)
		assert.Equal(t, "2001", w.store.Status().ResourceVersion)
		w.Compact()
		w.Cut()
		after(time.Minute)
		assert.Same(t, tok, w.store.Token())
		watches := w.Requests(wiretest.Resumed)
		require.Len(t, watches, 1)
		assert.Equal(t, "2001", watches[0].Options.ResourceVersion)
	})
}

func gone() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonGone, Message: "too old resource version: 1 (2)",
	}}
}

func status(err *apierrors.StatusError) metav1.Status {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return s
}

// tooLarge is how servers of different ages say that they have not reached a
// version.
func tooLarge(dress string) *apierrors.StatusError {
	err := wiretest.TooLargeResourceVersion(1002, 900)
	switch dress {
	case "since 1.17":
		err.ErrStatus.Details.Causes[0].Type = ""
	case "before":
		err.ErrStatus.Details.Causes = nil
	}
	err.ErrStatus.Details.RetryAfterSeconds = 0 // else client-go itself tries ten times
	return err
}

// versioned is a ConfigMap as the server may have sent it at some time.
func versioned(name, version string) *corev1.ConfigMap {
	m := configMap(name, "?")
	m.ResourceVersion, m.UID = version, map[string]types.UID{"a": "uid-1", "b": "uid-2"}[name]
	return m
}

// Where versions are no good to resume from, every end of a watch is the beginning
// of a relist, and that is what readers have to know.
func TestRelistWithoutVersions(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.Style(wiretest.Absent)
		w.onLists()
		w.maps.Set(configMap("a", "1"))
		w.ready()
		after(time.Minute)
		w.Break(wiretest.Lists, wiretest.Slow(10*time.Second))
		w.End()
		after(aMoment)
		assert.ErrorIs(t, w.notReady(), invalidation.Relist)
		w.readyAfter(9*time.Second, 10*time.Second)
		w.same()
	})
}
