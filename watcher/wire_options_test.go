package watcher_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Each option changes something. The zero value is in each table, since it has
// to be what is documented.

func TestPageSize(t *testing.T) {
	for size, want := range map[int64]int64{0: 500, 2: 2, -1: 0} {
		onWire(t, watcher.Options{PageSize: size}, func(t *testing.T, r *rig) {
			r.onLists()
			r.start()
			assert.Equal(t, want, r.Requests(wiretest.Lists)[0].Options.Limit)
		})
	}
}

func TestWatchTimeout(t *testing.T) {
	for timeout, least := range map[time.Duration]time.Duration{0: 5 * time.Minute, 10 * time.Second: 10 * time.Second, time.Second: time.Second} {
		onWire(t, watcher.Options{WatchTimeout: timeout}, func(t *testing.T, r *rig) {
			r.start()
			after(30 * least)
			lengths := map[int64]bool{}
			for _, w := range r.Requests(wiretest.Watches) {
				seconds := *w.Options.TimeoutSeconds
				lengths[seconds] = true
				assert.GreaterOrEqual(t, seconds, int64(least/time.Second))
				assert.Less(t, seconds, int64(2*least/time.Second))
			}
			assert.Equal(t, least > time.Second, len(lengths) > 1, "random: %v", lengths)
		})
	}
}

func TestMaxSilence(t *testing.T) {
	for silence, most := range map[time.Duration]time.Duration{0: 75 * time.Second, 20 * time.Second: 20 * time.Second} {
		onWire(t, watcher.Options{MaxSilence: silence}, func(t *testing.T, r *rig) {
			r.start()
			r.said()
			r.BlackHole(true)
			after(most - time.Nanosecond)
			assert.Empty(t, r.said(), "%v", silence)
			after(6 * time.Second) // the proof gets no answer
			assert.Equal(t, []string{"revoke Stuck"}, r.said(), "%v", silence)
		})
	}
}

func TestMaxStaleness(t *testing.T) {
	for bound, least := range map[time.Duration]int{0: 0, time.Minute: 60, 10 * time.Second: 360} {
		onWire(t, watcher.Options{MaxStaleness: bound}, func(t *testing.T, r *rig) {
			r.start()
			after(time.Hour)
			proofs := r.count(func(q wiretest.Request) bool { return q.Options.Limit == 1 })
			assert.GreaterOrEqual(t, proofs, least)
			if bound == 0 {
				assert.Zero(t, proofs, "no questions are asked while bookmarks come")
				return
			}
			r.said()
			r.BlackHole(true)
			after(bound)
			assert.Contains(t, r.said(), "revoke Stale", "%v", bound)
		})
	}
}

func TestReconnect(t *testing.T) {
	called := 0
	onWire(t, watcher.Options{Reconnect: func() { called++ }}, func(t *testing.T, r *rig) {
		r.start()
		r.Cut()
		after(time.Minute)
		assert.Zero(t, called, "not for what ends by itself")
		r.BlackHole(true)
		after(2 * time.Minute)
		assert.NotZero(t, called)
	})
}

func TestMinVersion(t *testing.T) {
	for least, want := range map[string][]string{
		"":     {"begin", "publish 1001"},
		"1001": {"begin", "publish 1001"},
		"1002": {"begin", "revoke Rewound", "begin", "publish 1001"},
	} {
		onWire(t, watcher.Options{MinVersion: least}, func(t *testing.T, r *rig) {
			r.put("a")
			r.start()
			assert.Equal(t, want, r.said())
		})
	}
}

func TestRequestTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: time.Minute, 5 * time.Second: 5 * time.Second} {
		onWire(t, watcher.Options{RequestTimeout: timeout, PageSize: 1}, func(t *testing.T, r *rig) {
			r.onLists()
			r.put("a", "b")
			r.Break(wiretest.First(1, wiretest.Later), wiretest.Hang)
			r.start()
			after(want + 2*time.Second)
			lists := r.Requests(wiretest.Lists)
			require.Len(t, lists, 4, "the first page, the one that hangs, and both again")
			assert.Equal(t, want, lists[1].Ended.Sub(lists[1].At))
			assert.True(t, lists[1].Dropped)
			assert.Equal(t, []string{"a", "b"}, r.names())
		})
	}
}

func TestInitialEventsTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second} {
		onWire(t, watcher.Options{InitialEventsTimeout: timeout}, func(t *testing.T, r *rig) {
			r.Break(wiretest.Initial, wiretest.Stalled)
			r.start()
			after(time.Minute)
			streams := r.Requests(wiretest.Initial)
			require.Len(t, streams, 1)
			assert.Equal(t, want, streams[0].Ended.Sub(streams[0].At))
		})
	}
}

func TestBackoff(t *testing.T) {
	for name, test := range map[string]struct {
		opts        watcher.Options
		first, last time.Duration // without jitter
	}{
		"default": {watcher.Options{}, 800 * time.Millisecond, 30 * time.Second},
		"chosen":  {watcher.Options{MinBackoff: 2 * time.Second, MaxBackoff: 5 * time.Second}, 2 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, test.opts, func(t *testing.T, r *rig) {
				r.Break(wiretest.All, wiretest.Answer(apierrors.NewInternalError(errors.New("no"))))
				r.start()
				after(time.Hour)
				requests := r.Requests(wiretest.All)
				var pauses []time.Duration
				for i := range requests[1:] {
					pauses = append(pauses, requests[i+1].At.Sub(requests[i].At))
				}
				assert.GreaterOrEqual(t, pauses[0], test.first/2)
				assert.LessOrEqual(t, pauses[0], test.first*3/2)
				late := pauses[10:]
				assert.GreaterOrEqual(t, slices.Min(late), test.last/2)
				assert.LessOrEqual(t, slices.Max(late), test.last*3/2)
				assert.Greater(t, slices.Max(late)-slices.Min(late), test.last/4, "jittered")
			})
		})
	}
}

func TestPolicy(t *testing.T) {
	var mine invalidation.Policy = func(o invalidation.Observation) invalidation.Decision {
		d := invalidation.Default(o)
		if o.Seen == invalidation.StreamEnded {
			d.Revoke = "Mine"
		}
		return d
	}
	for name, want := range map[string][]string{"default": nil, "mine": {"revoke Mine"}} {
		opts := watcher.Options{Policy: mine}
		if name == "default" {
			opts.Policy = nil
		}
		onWire(t, opts, func(t *testing.T, r *rig) {
			r.start()
			after(20 * time.Second)
			r.said()
			r.End()
			assert.Equal(t, want, r.said(), name)
		})
	}
}

// An event starts the pauses over (C16). That refusals do not is in the tests of
// the store.
func TestC16EventResetsTheBackoff(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		pauseAfter := func(progress func()) time.Duration {
			heal := r.Break(wiretest.All, wiretest.Answer(apierrors.NewInternalError(errors.New("no"))))
			r.Cut()
			after(10 * time.Minute) // the pauses are at their longest
			heal()
			after(46 * time.Second)
			progress()
			r.Break(wiretest.First(1, wiretest.Resumed), wiretest.Answer(apierrors.NewInternalError(errors.New("no"))))
			r.End()
			after(0)
			return time.Until(r.watch.Status().NextAttempt)
		}
		r.put("a")
		r.start()
		after(20 * time.Second)
		assert.LessOrEqual(t, pauseAfter(func() { r.put("b") }), 1200*time.Millisecond)
	})
}
