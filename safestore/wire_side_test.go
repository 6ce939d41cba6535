package safestore_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
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

// C1: trouble of a side request is its own. The stream is healthy, and nothing is revoked.
func TestC1SideRequests(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	for name, test := range map[string]struct {
		which wiretest.Which
		fault wiretest.Fault
	}{
		"a peek's version is gone":            {peeks, wiretest.Answer(expired)},
		"a peek's version is gone, in stream": {peeks, wiretest.Script(false, wiretest.ErrorEvent(expired))},
		"a peek is cut":                       {peeks, wiretest.Abort},
		"a peek is overloaded":                {peeks, wiretest.Answer(tooMany(1))},
		"an audit's token expires":            {wiretest.Later, wiretest.Answer(expired)},
		"an audit's pages are slow":           {wiretest.Later, wiretest.Slow(2 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			opts := safestore.Options{MaxStaleness: 10 * time.Second, Watch: watcher.Options{PageSize: 2, AuditInterval: time.Minute}}
			onWire(t, opts, func(t *testing.T, w *wire) {
				for i := range 20 {
					w.maps.Set(configMap(fmt.Sprint(i), "1"))
				}
				first := w.ready()
				if name == "an audit's pages are slow" {
					w.Break(test.which, test.fault)
				} else {
					w.Break(wiretest.First(1, test.which), test.fault)
				}
				for range 300 {
					after(time.Second)
					w.Skip(1)
				}
				assert.Same(t, first, w.store.Token(), "%v", w.hooks())
			})
		})
	}
}

// What the server refuses is one stable answer that names the verb, whichever verb it
// grants: the data does not come and go.
func TestOneVerbIsRefused(t *testing.T) {
	html := wiretest.Respond(http.StatusForbidden, http.Header{"Content-Type": {"text/html"}}, "<html>no</html>")
	for name, test := range map[string]struct {
		which wiretest.Which
		fault wiretest.Fault
		verb  string
	}{
		"list forbidden":           {wiretest.Lists, wiretest.Answer(forbidden()), "list: "},
		"list not found":           {wiretest.Lists, wiretest.Respond(http.StatusNotFound, nil, "404 page not found"), "list: "},
		"list forbidden, by HTML":  {wiretest.Lists, html, "list: "},
		"watch forbidden":          {wiretest.Watches, wiretest.Answer(forbidden()), "watch: "},
		"watch forbidden, slowly":  {wiretest.Watches, wiretest.Together(wiretest.Slow(3*time.Second), wiretest.Answer(forbidden())), "watch: "},
		"watch forbidden, by HTML": {wiretest.Watches, html, "watch: "},
	} {
		for _, bound := range []time.Duration{0, 10 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprint(name, bound), func(t *testing.T) {
				onWire(t, safestore.Options{MaxStaleness: bound}, func(t *testing.T, w *wire) {
					w.maps.Set(configMap("a", "1"))
					heal := w.Break(test.which, test.fault)
					w.run()
					after(2 * time.Minute)
					before := w.store.Token().Generation()
					after(time.Hour)
					if w.store.NotReady() != nil { // without a bound nobody asks for a list
						err := w.notReady()
						assert.ErrorContains(t, err, test.verb)
						stale, _ := w.store.Stale()
						assert.Nil(t, stale)
					}
					assert.LessOrEqual(t, w.store.Token().Generation(), before, "%v", w.hooks())
					assert.LessOrEqual(t, w.count(test.which), 400, "with a growing backoff")
					heal()
					w.readyAfter(0, time.Minute)
					w.same()
				})
			})
		}
	}
}

// Whatever a policy answers, the store heals when the server does, or is closed with the
// reason.
func TestAnyPolicyHeals(t *testing.T) {
	reasons := []invalidation.Reason{"", invalidation.Stale, invalidation.Stuck, "Mine"}
	for range 60 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var answers [32]invalidation.Decision
			for i := range answers {
				answers[i] = invalidation.Decision{
					Revoke:   reasons[rnd.IntN(len(reasons))],
					Recovery: invalidation.Recovery(rnd.IntN(3)),
					Drop:     rnd.IntN(4) == 0,
				}
			}
			policy := func(o invalidation.Observation) invalidation.Decision {
				if o.Seen == invalidation.StreamEnded && answers[o.Seen].Drop {
					return invalidation.Default(o) // else no watch could end
				}
				return answers[o.Seen]
			}
			opts := safestore.Options{Watch: watcher.Options{Policy: policy, PageSize: 2, MaxSilence: 5 * time.Second}}
			opts.MaxStaleness = []time.Duration{0, 10 * time.Second}[rnd.IntN(2)]
			onWire(t, opts, func(t *testing.T, w *wire) {
				for i := range 5 {
					w.maps.Set(configMap(fmt.Sprint(i), "1"))
				}
				w.run()
				w.breakAtRandom(rnd)
				w.Heal()
				w.maps.Set(configMap("a", "after"))
				after(time.Minute) // a token that was kept is as good as its stream
				w.readyAfter(0, 5*time.Minute)
				w.same()
			})
		})
	}
}

// breakAtRandom has one thing after another go wrong.
func (w *wire) breakAtRandom(rnd *rand.Rand) {
	faults := []wiretest.Fault{
		wiretest.Hang, wiretest.Abort, wiretest.Stalled, wiretest.HeldHeaders, wiretest.NoBookmarks,
		wiretest.Answer(forbidden()), wiretest.Answer(tooMany(1)), wiretest.Answer(failure("no")),
		wiretest.Answer(apierrors.NewResourceExpired("gone")), wiretest.Slow(7 * time.Second),
	}
	which := []wiretest.Which{wiretest.All, wiretest.Lists, wiretest.Watches, wiretest.Resumed, wiretest.Later}
	for range 8 {
		heal := w.Break(which[rnd.IntN(len(which))], faults[rnd.IntN(len(faults))])
		w.maps.Set(configMap("a", fmt.Sprint(rnd.Int())))
		[]func(){w.Cut, w.End, w.Stall, func() {}}[rnd.IntN(4)]()
		after(time.Duration(rnd.Int64N(int64(20 * time.Second))))
		heal()
	}
}

// C72: a server that asks for patience gets it, with jitter, and the reason says so.
func TestC72RetryAfterOfALongOverload(t *testing.T) {
	for _, seconds := range []int{10, 45, 120} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				w.maps.Set(configMap("a", "1"))
				heal := w.Break(wiretest.All, wiretest.Answer(tooMany(seconds)))
				w.run()
				after(10*time.Minute + 5*time.Second)
				all := w.Requests(wiretest.All)
				require.Greater(t, len(all), 2)
				for i, r := range all[1:] {
					assert.GreaterOrEqual(t, r.At.Sub(all[i].At), time.Duration(seconds)*time.Second)
				}
				assert.Regexp(t, "429|slow down", w.notReady().Error(), "the server's words, or what client-go makes of them")
				heal()
				w.readyAfter(0, 3*time.Minute)
			})
		})
	}
}
