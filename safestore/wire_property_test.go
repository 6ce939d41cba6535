package safestore_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// healing is how long it takes at most, after the last fault, until the store is
// ready and shows what the server has: the longest pause, then a page that gets
// no answer.
const healing = 45*time.Second + time.Minute

// C48: after any sequence of faults, a healthy server leads back to ready within
// a fixed time, and nobody was ever shown what never was.
//
// Replay one run with: go test ./safestore -run TestC48 -seed=N
func TestC48AnyFaultsThenHealthy(t *testing.T) {
	seeds := seedsFor(100)
	for _, seed := range seeds {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { anyFaults(t, seed) }) {
			t.Logf("replay with: go test ./safestore -run TestC48 -seed=%d", seed)
			return
		}
	}
}

// seedsFor returns the seeds of a random test: the one that is given by the flag of
// model_test.go, or as many as are to be run.
func seedsFor(runs int) []uint64 {
	if f := flag.Lookup("seed"); f != nil && f.Value.String() != "0" {
		return []uint64{f.Value.(flag.Getter).Get().(uint64)}
	}
	if testing.Short() {
		runs = 30
	}
	seeds := make([]uint64, runs)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	return seeds
}

func anyFaults(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	opts := watchOptions(watcher.Options{PageSize: 1 + rnd.Int64N(4)})
	opts.GaplessRelist = rnd.IntN(2) == 0
	if rnd.IntN(2) == 0 {
		opts.MaxStaleness = 2*time.Second + time.Duration(rnd.Int64N(int64(time.Minute)))
	}
	if rnd.IntN(4) == 0 {
		opts.Watch.AuditInterval = 10 * time.Second
	}
	onWire(t, opts, func(t *testing.T, w *wire) {
		var steps []string
		say := func(format string, args ...any) {
			steps = append(steps, fmt.Sprintf("%8v ", time.Since(w.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
		}
		defer func() {
			if t.Failed() {
				for _, step := range steps {
					t.Log(step)
				}
			}
		}()
		change := func() {
			name := fmt.Sprint(rnd.IntN(8))
			if _, exists := w.maps.Objects()[named(name)]; exists && rnd.IntN(3) == 0 {
				w.maps.Delete("default", name)
			} else {
				w.maps.Set(configMap(name, fmt.Sprint(rnd.Int())))
			}
		}
		for range rnd.IntN(10) {
			change()
		}
		// What a reader may see at any time is a state that the server was in.
		states := map[string]bool{fmt.Sprint(w.truth()): true}

		w.run()
		for range 1 + rnd.IntN(8) {
			if rnd.IntN(4) > 0 {
				which, name := pick(rnd, requests)
				fault, what := pick(rnd, faults(w, rnd))
				say("%s: %s", name, what)
				heal := w.Break(which, fault)
				if rnd.IntN(2) == 0 {
					time.AfterFunc(time.Duration(rnd.Int64N(int64(5*time.Minute))), heal)
				}
			}
			if rnd.IntN(2) == 0 {
				act, what := pick(rnd, outages)
				say("%s", what)
				act(w)
				states[fmt.Sprint(w.truth())] = true
			}
			for range rnd.IntN(4) {
				change()
				states[fmt.Sprint(w.truth())] = true
			}
			after(time.Duration(rnd.Int64N(int64(2 * time.Minute))))
			if snapshot, err := w.store.Snapshot(); err == nil {
				if got := fmt.Sprint(shown(snapshot)); !states[got] {
					t.Errorf("a reader was shown what never was: %v", got)
				}
			}
		}
		say("healthy again, store %v, %s", w.store.Token().State(), w.store.Status().Watch.Phase)
		w.Heal()
		for range rnd.IntN(3) {
			change()
		}
		after(healing)
		if w.store.Token().State() != token.Ready {
			t.Errorf("not ready %v after the last fault: %v", healing, w.notReady())
			return
		}
		w.same()
		change()
		synctest.Wait()
		w.same()
		tok := w.store.Token()
		after(time.Hour)
		w.same()
		if w.store.Token() != tok {
			t.Errorf("revoked although the server was healthy: %v", tok.Cause())
		}
	})
}

type choice[T any] struct {
	name  string
	value T
}

func pick[T any](rnd *rand.Rand, choices []choice[T]) (T, string) {
	c := choices[rnd.IntN(len(choices))]
	return c.value, c.name
}

var requests = []choice[wiretest.Which]{
	{"all requests", wiretest.All},
	{"lists", wiretest.Lists},
	{"watches", wiretest.Watches},
	{"WatchLists", wiretest.Initial},
	{"resumed watches", wiretest.Resumed},
	{"pages after the first", wiretest.Later},
}

func faults(w *wire, rnd *rand.Rand) []choice[wiretest.Fault] {
	return []choice[wiretest.Fault]{
		{"401", wiretest.Answer(apierrors.NewUnauthorized("who?"))},
		{"403", wiretest.Answer(forbidden())},
		{"404", wiretest.Answer(apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "", 0, true))},
		{"405", wiretest.Answer(apierrors.NewMethodNotSupported(schema.GroupResource{}, "list"))},
		{"410", wiretest.Answer(expired)},
		{"410 in the stream", wiretest.Script(false, wiretest.ErrorEvent(expired))},
		{"422", wiretest.Answer(wiretest.NoWatchList())},
		{"429", wiretest.Answer(tooMany(0))},
		{"429 for 20 s", wiretest.Answer(tooMany(20))},
		{"429 in the stream", wiretest.Script(false, wiretest.ErrorEvent(tooMany(7)))},
		{"500", wiretest.Answer(failure("no"))},
		{"500 in the stream", wiretest.Script(true, wiretest.ErrorEvent(failure("no")))},
		{"502 from a proxy", wiretest.Respond(http.StatusBadGateway, http.Header{"Content-Type": {"text/html"}}, "<html>Bad Gateway</html>")},
		{"504 too large", wiretest.Answer(tooLarge("since 1.18.6"))},
		{"cut", wiretest.Abort},
		{"empty", wiretest.Respond(http.StatusOK, nil, "")},
		{"garbage", wiretest.Respond(http.StatusOK, nil, "garbage\n")},
		{"half a frame", wiretest.Script(rnd.IntN(2) == 0, []byte(`{"type":"ADDED","object":{"kind":"Conf`))},
		{"a Status", wiretest.Script(false, wiretest.Frame(watch.Added, status(expired)))},
		{"an error without kind", wiretest.Script(false, wiretest.Frame(watch.Error, map[string]any{"code": 410}))},
		{"a Table", wiretest.AsTable},
		{"nothing", wiretest.Hang},
		{"slow", wiretest.Slow(time.Duration(rnd.Int64N(int64(90 * time.Second))))},
		{"held headers", wiretest.HeldHeaders},
		{"stalled", wiretest.Stalled},
		{"no marker", wiretest.NoMarker},
		{"no marker, no end", wiretest.Together(wiretest.NoMarker, wiretest.NoTimeout)},
		{"bare marker", wiretest.BareMarker},
		{"no bookmarks", wiretest.NoBookmarks},
		{"no timeout", wiretest.NoTimeout},
		{"short", wiretest.EndsAfter(time.Duration(rnd.Int64N(int64(20 * time.Second))))},
		{"DELETED without metadata", wiretest.WithoutMetadata(watch.Deleted)},
		{"lag", wiretest.Lag(w.Version())},
		{"the past", wiretest.Past(w.Version())},
	}
}

var outages = []choice[func(*wire)]{
	{"all is cut", func(w *wire) { w.Cut() }},
	{"down", func(w *wire) { w.Down() }},
	{"up", func(w *wire) { w.Up() }},
	{"black hole", func(w *wire) { w.BlackHole(true) }},
	{"black hole ends", func(w *wire) { w.BlackHole(false) }},
	{"watches stall", func(w *wire) { w.Stall() }},
	{"watches end", func(w *wire) { w.End() }},
	{"compacted", func(w *wire) { w.Compact() }},
	{"the CRD is deleted and created", func(w *wire) { w.Remove(wiretest.ConfigMaps); w.Resource(wiretest.ConfigMaps) }},
	{"the program revokes", func(w *wire) { w.store.Revoke(w.store.Token(), nil) }},
	{"410 on open watches", func(w *wire) { w.Send(wiretest.ErrorEvent(expired)) }},
	{"healthy for a while", func(w *wire) { w.Heal(); after(time.Minute) }},
}
