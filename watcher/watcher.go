package watcher

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// publishGrace is how long a complete list waits for its watch to be open
	// before it is published all the same.
	publishGrace = 2 * time.Second
	// watchSlack is how much longer than it was asked to a server may keep a
	// watch open before the watcher closes it itself (C4).
	watchSlack = 10 * time.Second
	// settled is how long a watch must have lasted for its end to be no failure
	// in a row of failures.
	settled = 10 * time.Second
	// closeGrace is how long Run waits for a source that does not honour its
	// context.
	closeGrace = time.Second
)

// Watcher keeps a Sink in step with a Source. Make one with [New], and run it
// once.
type Watcher struct {
	source Source
	sink   Sink
	opts   Options

	relist chan struct{} // holds one request for a relist
	wanted chan struct{} // holds one request for a proof
	status statusBoard

	numbers atomic.Uint64 // of the newest proof or set that was asked for

	// The rest belongs to the goroutine of Run.

	state   state
	ordered bool         // versions can be compared: not a fake
	told    *observation // what the watcher has found out by itself, to be observed next

	main   exchange       // the list, or the stream
	side   exchange       // the list of a proof
	peeks  []*peek        // the second watches of proofs
	peeked chan glimpse   // what they bring
	calls  sync.WaitGroup // goroutines that make requests

	timer     *time.Timer
	alarms    [alarms]time.Time
	limit     time.Duration // what limitAlarm was set to
	stageTime time.Duration // what stageAlarm was set to

	heard     time.Time // when the server last gave a sign of life
	begun     Proof     // the list or WatchList under way, or that the set came by
	asked     Proof     // the question for the server's version
	goesBy    Proof     // what the proof under way goes by
	auditNext string    // continue token of the audit
	provenAt  time.Time // the newest proof, or consistent set
	listing   time.Time // since when there is no complete set; zero if there is one
	size      int64     // about how many objects the last complete set has

	retry    *backoff.ExponentialBackOff
	progress bool // since the last reset of retry

	reconnect bool // before the next request
}

// New returns a Watcher that is not running. It fails if source or sink is nil
// or an option makes no sense.
func New(source Source, sink Sink, opts Options) (*Watcher, error) {
	if isNil(source) {
		return nil, errors.New("source is nil")
	}
	if isNil(sink) {
		return nil, errors.New("sink is nil")
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	w := &Watcher{
		source:  source,
		sink:    sink,
		opts:    opts,
		relist:  make(chan struct{}, 1),
		wanted:  make(chan struct{}, 1),
		peeked:  make(chan glimpse),
		ordered: true,
		retry: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(opts.MinBackoff),
			backoff.WithMaxInterval(opts.MaxBackoff),
			backoff.WithMultiplier(2),
			backoff.WithMaxElapsedTime(0), // never give up
		),
	}
	w.state.noWatchList = !supportsWatchList(source)
	w.state.floor = opts.MinVersion
	w.state.bounded = opts.MaxStaleness != 0
	w.state.tight = isTight(opts.MaxStaleness)
	return w, nil
}

// isNil reports whether v is nil or a nil pointer in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// Relist asks for the whole set to be listed again. It does not wait; requests
// that are not yet heard of count as one.
func (w *Watcher) Relist() { post(w.relist) }

// Prove asks for a proof of freshness as of a moment that is not before the
// call, and returns the number that such a proof has at least. It does not wait;
// one proof serves all who ask before it begins.
func (w *Watcher) Prove() (number uint64) {
	number = w.numbers.Load() + 1
	post(w.wanted)
	return number
}

// number begins a proof: what was committed before is what it will show.
func (w *Watcher) number() Proof { return Proof{AsOf: time.Now(), Number: w.numbers.Add(1)} }

func post(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run lists and watches until ctx ends, and then returns ctx's cause. It must be
// called once only.
func (w *Watcher) Run(ctx context.Context) error {
	w.timer = time.NewTimer(0)
	defer w.timer.Stop()
	defer w.waitForCalls()
	defer w.main.hangUp()
	defer w.probe(ctx, dropProbe)

	w.heard = time.Now() // from here on silence counts
	w.alarms[silenceAlarm] = w.heard.Add(w.opts.MaxSilence)
	first := move{state: w.state}
	first.build()
	w.state = first.state
	w.carryOut(ctx, first.effects)
	for {
		o, ok := w.observe(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !ok {
			continue
		}
		next, e := w.state.step(o, w.opts.Policy.Decide)
		w.note(ctx, o)
		w.state = next
		w.carryOut(ctx, e)
	}
}

// observe waits for the next thing to happen. It reports false if that turns out
// to be nothing, and is not to be believed once ctx is over.
func (w *Watcher) observe(ctx context.Context) (o observation, ok bool) {
	if w.told != nil {
		o, w.told = *w.told, nil
		return o, true
	}
	w.wind()
	select {
	case <-ctx.Done():
		return o, false
	case <-w.relist:
		return observation{kind: relistAsked}, true
	case <-w.wanted:
		return observation{kind: proofWanted}, true
	case <-w.timer.C:
		return w.ring(ctx)
	case a := <-w.main.answers:
		if ctx.Err() != nil {
			a.discard()
			return o, false
		}
		return w.answered(a), true
	case e, open := <-w.main.events:
		if ctx.Err() != nil {
			return o, false
		}
		if open {
			w.hear()
		}
		return w.event(e, open), true
	case a := <-w.side.answers:
		if ctx.Err() != nil {
			a.discard()
			return o, false
		}
		return w.probed(a), true
	case g := <-w.peeked:
		return w.glimpsed(g)
	}
}

func (w *Watcher) timeUp() observation {
	switch w.state.phase {
	case waiting:
		return observation{kind: waited}
	case streaming:
		return observation{kind: timedOut, err: fmt.Errorf("%w: given up after %v", errNoMarker, time.Since(w.main.askedAt).Round(time.Second))}
	case watching:
		return observation{kind: timedOut} // no failure: the watch's own time
	default:
		return observation{kind: timedOut, err: &noAnswer{w.state.phase.String(), w.limit}}
	}
}

// waitForCalls waits for the requests that were under way when ctx ended.
func (w *Watcher) waitForCalls() {
	done := make(chan struct{})
	go func() {
		w.calls.Wait()
		close(done)
	}()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
