package watcher

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"time"
)

// trace follows a request on its way through the client: it may wait there for the
// client's own rate limiter, and after an answer that asks for patience (429, or 5xx
// with Retry-After) client-go repeats it without telling anybody. Neither is the
// server's silence. A source that makes no HTTP requests leaves no trace, and counts
// as having sent its request at once.
type trace struct {
	mu       sync.Mutex
	asked    time.Time // when the source was asked
	sent     time.Time // when the client last began to send it; zero if it has not
	answered time.Time // when the first byte of the last answer came; zero if none has
	times    int       // how often it was sent
	ended    bool      // there is a result
}

// queueTime is how long a request may wait in the client before it is given up.
const queueTime = 5 * time.Minute

// patience is how long client-go may take after an answer: to receive it, or to wait
// as long as the answer asks.
const patience = maxRetryAfter + 10*time.Second

// follow returns a context whose requests leave their trace.
func (t *trace) follow(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.sent, t.answered = time.Now(), time.Time{}
			t.times++
		},
		GotFirstResponseByte: func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.answered = time.Now()
		},
	})
}

// delay is why there is no result of a request yet, and for how long.
type delay struct {
	reason string
	since  time.Duration
}

func (d delay) String() string { return fmt.Sprintf("%s for %v", d.reason, d.since) }

// patient reports how much longer the request should be waited for, if the server is
// given limit to answer, and most to be repeated, and else why it takes so long. plain
// says that requests of this source are known to leave no trace.
func (t *trace) patient(limit, most time.Duration, plain bool) (left time.Duration, why delay) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	wait := func(from time.Time, most time.Duration, reason string) (time.Duration, delay) {
		return from.Add(most).Sub(now), delay{reason, now.Sub(from).Round(time.Millisecond)}
	}
	switch {
	case t.sent.IsZero() && !plain:
		return wait(t.asked, max(limit, queueTime), queued)
	case t.sent.IsZero():
		return wait(t.asked, limit, "nothing came")
	case t.answered.IsZero():
		return wait(t.sent, limit, "nothing came")
	default:
		return wait(t.answered, max(limit, most), repeated)
	}
}

// What a request may wait for in the client.
const (
	queued   = "waiting in the client's own rate limiter"
	repeated = "the server asked for patience (429, or 5xx with Retry-After) and client-go waits to repeat the request"
)

// delayed says what the request waits for in the client, for a person; empty if it does
// not, or has only just begun to.
func (t *trace) delayed() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := delay{queued, time.Since(t.asked)}
	if !t.answered.IsZero() {
		d = delay{repeated, time.Since(t.answered)}
	}
	if t.ended || d.since < time.Second || !t.sent.IsZero() && t.answered.IsZero() {
		return ""
	}
	d.since = d.since.Round(time.Second)
	return d.String()
}

// end takes note that there is a result.
func (t *trace) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// reached reports whether the server has answered.
func (t *trace) reached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.answered.IsZero()
}

// left reports whether the request has left the client.
func (t *trace) left() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.sent.IsZero()
}
