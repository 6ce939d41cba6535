package watcher

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// openGrace is how long the opening of a watch is waited for before the set is
	// proven without it.
	openGrace = 2 * time.Second
	// watchSlack is how much longer than it was asked to a server may keep a
	// watch open before the watcher closes it itself (C4).
	watchSlack = 10 * time.Second
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

	state state
	plain bool          // the source makes no HTTP requests: they leave no trace
	told  []observation // what the watcher has found out by itself, to be observed next

	main      exchange       // the list, or the stream
	side      exchange       // the question of a proof
	auditSide exchange       // the list of an audit
	peeks     []*peek        // the second watches of proofs
	peeked    chan glimpse   // what they bring
	calls     sync.WaitGroup // goroutines that make requests

	timer  *time.Timer
	alarms [alarms]time.Time
	limits [alarms]time.Duration // what limitAlarm and the stages' alarms were set to

	heard    time.Time // when the server last gave a sign of life
	received time.Time // when the event that is being applied came
	begun    Proof     // the list or WatchList under way, or that the set came by
	asked    Proof     // the question for the server's version
	goesBy   Proof     // what the proof under way goes by
	auditing Proof     // the audit under way
	provenAt time.Time // the newest proof, or consistent set
	waits    bool      // the sink waits for the next proof
	listing  time.Time // since when there is no complete set; zero if there is one
	size     int64     // about how many objects the last complete set has

	sample    Sample                           // the last answer to the question of a proof
	awaited   map[types.NamespacedName]awaited // what the set is to reflect before it is proven
	auditNext string                           // continue token of the audit

	retry *backoff.ExponentialBackOff
	again *backoff.ExponentialBackOff // of proofs
	// elsewhere paces proofs that the client has no room for.
	elsewhere *backoff.ExponentialBackOff
	progress  bool // since the last reset of retry

	reconnect bool      // before the next request
	asks      error     // the server's wish to be left alone
	until     time.Time // and for how long
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
		awaited: map[types.NamespacedName]awaited{},
		retry:   backingOff(opts.MinBackoff, opts.MaxBackoff),
		again:   backingOff(proofRetry(opts.MaxStaleness)),

		elsewhere: backingOff(room(opts.MaxStaleness), queueTime),
	}
	for i, x := range []*exchange{&w.main, &w.side, &w.auditSide} {
		x.board = &w.status.traces[i]
	}
	w.state.feed.noWatchList = !supportsWatchList(source)
	w.state.marks.seen = opts.MinVersion
	w.state.proof.tight = isTight(opts.MaxStaleness)
	return w, nil
}

// backingOff returns a backoff that never gives up.
func backingOff(least, most time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(least),
		backoff.WithMaxInterval(most),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0),
	)
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
	defer w.side.hangUp()
	defer w.auditSide.hangUp()
	defer w.closePeeks()

	w.hear() // from here on silence counts
	w.alarms[silenceAlarm] = w.heard.Add(w.opts.MaxSilence)
	first := move{state: w.state}
	first.build()
	w.state = first.state
	w.carryOut(ctx, first.out)
	for {
		o, ok := w.observe(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !ok {
			continue
		}
		if w.state.alive(o) {
			w.hear()
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
	if len(w.told) > 0 {
		o, w.told = w.told[0], w.told[1:]
		return o, true
	}
	w.wind()
	select {
	case <-ctx.Done():
		return o, false
	case <-w.relist:
		return observation{kind: relistAsked}, true
	case <-w.wanted:
		return observation{kind: proofWanted, by: waiter}, true
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
		return w.event(e, open), true
	case a := <-w.side.answers:
		if ctx.Err() != nil {
			a.discard()
			return o, false
		}
		return w.replied(a), true
	case a := <-w.auditSide.answers:
		if ctx.Err() != nil {
			a.discard()
			return o, false
		}
		return w.audited(a), true
	case g := <-w.peeked:
		return w.glimpsed(g)
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
