package watcher

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// exchanges is how many there are at once: of the feed, of the proof and of the audit.
const exchanges = 3

// exchange is one conversation with the server at a time: a request, and the
// stream it may lead to. The zero value is silent. It belongs to the goroutine
// of Run.
type exchange struct {
	board *atomic.Pointer[trace] // shows the trace to others, nil to nobody

	cancel  context.CancelFunc // ends the request and the stream; nil when there is none
	answers <-chan answer      // what comes of the request, once
	stream  watch.Interface
	events  <-chan watch.Event

	verb     verb
	trace    *trace        // of the request
	askedAt  time.Time     // when the request was made
	openedAt time.Time     // when its stream was opened, zero if it was not
	length   time.Duration // how long the server was asked to keep the stream
	silent   bool          // nothing has come from the stream yet
}

// answer is what came of a request: a list, a stream, or an error.
type answer struct {
	list   runtime.Object
	stream watch.Interface
	err    error
}

var errNothing = errors.New("the source returned neither an answer nor an error")

// ask makes a request in a goroutine of its own, so that a source that hangs
// holds up nothing. What was asked before is over. The context bounds the life
// of the stream as well.
func (x *exchange) ask(ctx context.Context, calls *sync.WaitGroup, verb verb, call func(context.Context) answer) {
	x.hangUp()
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer)
	x.cancel, x.answers, x.verb, x.askedAt = cancel, answers, verb, time.Now()
	x.trace = &trace{asked: x.askedAt}
	followed, t := x.trace.follow(ctx), x.trace
	x.show(t)
	calls.Go(func() {
		a := call(followed)
		t.end()
		if a.err == nil && isNil(a.list) && isNil(a.stream) {
			a.err = &unusable{errNothing}
		}
		select {
		case answers <- a:
		case <-ctx.Done():
			a.discard() // nobody waits for it any more
		}
	})
}

// open takes the stream that the request led to.
func (x *exchange) open(stream watch.Interface) {
	x.stream, x.events = stream, stream.ResultChan()
	x.openedAt, x.silent = time.Now(), true
}

// hangUp ends the request under way and the open stream, if any.
func (x *exchange) hangUp() {
	if x.cancel != nil {
		x.cancel()
	}
	if x.stream != nil {
		x.stream.Stop()
	}
	x.show(nil)
	*x = exchange{board: x.board}
}

func (x *exchange) show(t *trace) {
	if x.board != nil {
		x.board.Store(t)
	}
}

// lasted reports whether there was a stream for at least d.
func (x *exchange) lasted(d time.Duration) bool {
	return !x.openedAt.IsZero() && time.Since(x.openedAt) >= d
}

// discard closes what an answer holds open.
func (a answer) discard() {
	if a.stream != nil {
		a.stream.Stop()
	}
}
