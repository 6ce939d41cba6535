package safestore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// A watch whose time is up for the client alone is no sign of life: a stuck watch is found
// also where each one is given up before MaxSilence has passed.
func TestStuckWatchWithAShortWatchTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Second, 20 * time.Second, time.Minute} {
		t.Run(timeout.String(), func(t *testing.T) {
			onWire(t, watchOptions(watcher.Options{WatchTimeout: timeout}), func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				first := w.ready()
				w.Break(wiretest.Resumed, wiretest.Stalled)
				w.Stall()
				w.maps.Set(configMap("a", "2"))
				w.ended(first, 3*time.Minute)
				after(10 * time.Minute)
				if snapshot, err := w.store.Snapshot(); err == nil {
					m, err := snapshot.Get(named("a"))
					require.NoError(t, err)
					assert.Equal(t, "2", m.Data["key"])
				}
			})
		})
	}
}

// Watches that are accepted and bring nothing but an error are no sign of life.
func TestErrorEventsAreNoLife(t *testing.T) {
	for name, fault := range map[string]wiretest.Fault{
		"429":                    wiretest.Script(false, wiretest.ErrorEvent(tooMany(0))),
		"400":                    wiretest.Script(false, wiretest.ErrorEvent(apierrors.NewBadRequest("no"))),
		"what cannot be parsed":  wiretest.Script(false, []byte("garbage\n")),
		"429 that asks for days": wiretest.Script(false, wiretest.ErrorEvent(tooMany(100_000))),
	} {
		for _, bound := range []time.Duration{0, 30 * time.Second} {
			t.Run(fmt.Sprint(name, bound), func(t *testing.T) {
				onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
					w.maps.Set(configMap("a", "1"))
					first := w.ready()
					after(10 * time.Second)
					heal := w.Break(wiretest.Watches, fault)
					w.End()
					after(0)
					w.maps.Set(configMap("a", "2"))
					w.ended(first, 3*time.Minute)
					heal()
					w.readyAfter(0, 5*time.Minute)
					w.same()
				})
			})
		}
	}
}

// C65: a proxy begins a response with the first byte of its body. A quiet collection, among
// others that change, is read all the time, and needs no event for that.
func TestC65HeldHeaders(t *testing.T) {
	for name, fault := range map[string]wiretest.Fault{
		"bookmarks":    wiretest.HeldHeaders,
		"no bookmarks": wiretest.Together(wiretest.HeldHeaders, wiretest.NoBookmarks),
		"ends early":   wiretest.Together(wiretest.HeldHeaders, wiretest.NoBookmarks, wiretest.EndsAfter(50*time.Second)),
	} {
		for _, bound := range []time.Duration{0, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute} {
			t.Run(fmt.Sprint(name, bound), func(t *testing.T) {
				onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
					w.Break(wiretest.Resumed, fault)
					w.onLists()
					w.maps.Set(configMap("a", "1"))
					w.run()
					w.readyAfter(0, 3*time.Second)
					for range 900 {
						after(time.Second)
						w.Skip(1)
						require.NoError(t, w.store.NotReady(), "at %v: %v", time.Since(w.began), w.hooks())
					}
					w.maps.Set(configMap("a", "2"))
					after(3 * time.Second)
					w.same()
				})
			})
		}
	}
}

// The pages of a list are signs of life: a relist without a gap may take longer than
// MaxSilence.
func TestPagesAreSignsOfLife(t *testing.T) {
	opts := safestore.Options{GaplessRelist: true, Watch: watcher.Options{PageSize: 2}}
	onWire(t, opts, func(t *testing.T, w *wire) {
		for i := range 40 {
			w.maps.Set(configMap(fmt.Sprint(i), "1"))
		}
		w.onLists()
		w.ready()
		w.Break(wiretest.Later, wiretest.Slow(5*time.Second)) // 19 pages
		w.Skip(1)
		w.Compact()
		w.Send(wiretest.ErrorEvent(apierrors.NewResourceExpired("gone")))
		for range 120 {
			after(time.Second)
			require.NoError(t, w.store.NotReady(), "%v", w.hooks())
		}
		assert.Equal(t, []string{"ready 1", "revoked 1 Relist", "ready 2"}, w.hooks())
	})
}

// Who waits for a proof gets one, also where no bookmark comes, or no version, and nothing
// but a proof would be asked for: a caller of Sync, a token that is damped, and one that
// waited for a function of the program.
func TestWaitersGetTheirProof(t *testing.T) {
	waits := map[string]func(*testing.T, *wire){
		"Sync": func(t *testing.T, w *wire) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			require.NoError(t, w.store.Sync(ctx))
		},
		"damping": func(t *testing.T, w *wire) {
			for range 3 {
				after(time.Second)
				w.store.Revoke(w.store.Token(), nil)
			}
			w.readyAfter(0, 20*time.Second)
		},
		"a function": func(t *testing.T, w *wire) {
			remove := w.store.OnRevokeSync(time.Minute, func(context.Context, *invalidation.Revocation) { time.Sleep(time.Second) })
			w.store.Revoke(w.store.Token(), nil)
			w.readyAfter(time.Second, 20*time.Second)
			remove()
		},
	}
	for name, prepare := range map[string]func(*wire){
		"bookmarks":              func(*wire) {},
		"no bookmarks":           func(w *wire) { w.Break(wiretest.Watches, wiretest.NoBookmarks) },
		"no bookmarks for peeks": func(w *wire) { w.Break(peeks, wiretest.NoBookmarks) },
		"no versions":            func(w *wire) { w.Style(wiretest.Absent); w.onLists() },
		"opaque versions":        func(w *wire) { w.Style(wiretest.Opaque) },
	} {
		for who, wait := range waits {
			t.Run(name+", "+who, func(t *testing.T) {
				onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
					prepare(w)
					w.Break(wiretest.Lists, wiretest.Slow(50*time.Millisecond)) // while others change
					w.maps.Set(configMap("a", "1"))
					w.run()
					w.readyAfter(0, time.Second)
					go func() {
						for range 1000 {
							time.Sleep(100 * time.Millisecond)
							w.Skip(1)
						}
					}()
					wait(t, w)
					w.same()
					after(2 * time.Minute)
				})
			})
		}
	}
}

// peeks are the second watches of proofs.
func peeks(r wiretest.Request) bool {
	return wiretest.Resumed(r) && r.Options.TimeoutSeconds != nil && *r.Options.TimeoutSeconds == 3
}
