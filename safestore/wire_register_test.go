package safestore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Guarantee 4: a register behind a network and a server with random faults. Its
// value is written at random times; a read that succeeds at time t shows a value
// that was not replaced before t minus the bound.
//
// Replay one run with: go test ./safestore -run TestBoundedRegister -seed=N
func TestBoundedRegister(t *testing.T) {
	seeds := seedsFor(100)
	reads, refused := 0, 0
	for _, seed := range seeds {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := boundedRegister(t, seed)
			reads, refused = reads+r.reads, refused+r.refused
		}) {
			t.Logf("replay with: go test ./safestore -run TestBoundedRegister -seed=%d", seed)
			return
		}
	}
	t.Logf("%d reads were answered, %d refused", reads, refused)
	if len(seeds) > 1 && (reads < 10*len(seeds) || refused < 10*len(seeds)) {
		t.Errorf("the test shows little")
	}
}

// register is one run.
type register struct {
	*wire
	bound   time.Duration
	written []time.Time // when each value was
	reads   int
	refused int
	steps   []string
}

func boundedRegister(t *testing.T, seed uint64) (r *register) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	bounds := []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
	bound := bounds[rnd.IntN(len(bounds))]
	opts := safestore.Options{
		MaxStaleness:  bound,
		GaplessRelist: rnd.IntN(2) == 0,
		Watch:         watcher.Options{PageSize: 1 + rnd.Int64N(3), WatchTimeout: 5*time.Second + time.Duration(rnd.Int64N(int64(5*time.Minute)))},
	}
	if rnd.IntN(3) == 0 {
		opts.Watch.WatchTimeout = time.Second + time.Duration(rnd.Int64N(int64(10*time.Second)))
	}
	if rnd.IntN(3) == 0 {
		opts.Watch.AuditInterval = time.Second + time.Duration(rnd.Int64N(int64(time.Minute)))
	}
	onWire(t, opts, func(t *testing.T, w *wire) {
		r = &register{wire: w, bound: bound}
		if rnd.IntN(3) == 0 { // as for one namespace among others, or with a selector
			w.Break(wiretest.Watches, wiretest.NoBookmarks)
		}
		if rnd.IntN(4) == 0 { // a stream that comes to be behind
			var by atomic.Int64
			var err error
			w.store, err = safestore.New[*corev1.ConfigMap](lateSource{w.source(), &by}, opts)
			require.NoError(t, err)
			for i := range 10 {
				time.AfterFunc(time.Duration(i)*bound/2, func() { by.Store(int64(time.Duration(i) * bound / 8)) })
			}
			defer func() { w.stop(nil); time.Sleep(10 * bound) }() // what is on its way arrives
		}
		r.write()
		w.run()
		for range 1 + rnd.IntN(6) {
			if rnd.IntN(4) > 0 {
				which, name := pick(rnd, requests)
				fault, what := pick(rnd, without(faults(w, rnd), "the past"))
				r.say("%s: %s", name, what)
				heal := w.Break(which, fault)
				if rnd.IntN(2) == 0 {
					time.AfterFunc(time.Duration(rnd.Int64N(int64(2*bound))), heal)
				}
			}
			if rnd.IntN(2) == 0 {
				act, what := pick(rnd, without(outages, "the CRD is deleted and created"))
				r.say("%s", what)
				act(w)
			}
			r.goOn(rnd)
		}
		w.Heal()
		r.say("healthy again")
		r.goOn(rnd)
		if t.Failed() {
			t.Logf("bound %v, %+v", bound, opts)
			for _, step := range r.steps {
				t.Log(step)
			}
		}
	})
	return r
}

// without leaves out what the register does not survive: a server that lies when
// it is asked for its current version, against which nothing helps, and the
// deletion of the register.
func without[T any](all []choice[T], name string) []choice[T] {
	return slices.DeleteFunc(slices.Clone(all), func(c choice[T]) bool { return c.name == name })
}

func (r *register) say(format string, args ...any) {
	r.steps = append(r.steps, fmt.Sprintf("%8v ", time.Since(r.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (r *register) write() {
	r.maps.Set(configMap("register", strconv.Itoa(len(r.written))))
	r.written = append(r.written, time.Now())
}

// goOn writes and reads for a while.
func (r *register) goOn(rnd *rand.Rand) {
	end := time.Now().Add(time.Duration(rnd.Int64N(int64(5 * r.bound))))
	busy := rnd.IntN(2) == 0 // or quiet: then it is for proofs to find what is missed
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rnd.Int64N(int64(r.bound / 4))))
		if rnd.IntN(10) == 0 || busy && rnd.IntN(2) == 0 {
			r.write()
		}
		if rnd.IntN(2) == 0 {
			r.Skip(1) // others change
		}
		r.read()
	}
}

func (r *register) read() {
	now := time.Now()
	snapshot, err := r.store.Snapshot()
	if err != nil {
		r.refused++
		return
	}
	r.reads++
	value := -1 // absent
	if m, err := snapshot.Get(named("register")); err == nil {
		value, _ = strconv.Atoi(m.Data["key"])
	}
	for i := value + 1; i < len(r.written); i++ {
		if age := now.Sub(r.written[i]); age > r.bound {
			r.t.Errorf("at %v, generation %d: value %d is read, %d was written %v ago, and the bound is %v",
				now.Sub(r.began), snapshot.Token().Generation(), value, i, age, r.bound)
			r.say("that is wrong")
			return
		}
	}
}
