package watcher

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Many stores on one client share its rate limiter. A proof that would have to wait there
// for long is better not asked for: it would come late, and keep the program's own
// requests waiting. So the limiter is told how long the request may wait, and refuses it
// at once if it would be longer. A store that is refused again and again asks more and
// more rarely, which leaves room for others: above what the client allows some stores keep
// their bound, and the others say why they do not.

// errNoRoom is why a proof was not asked for.
var errNoRoom = errors.New("the client's own rate limiter has no room for a proof of freshness")

// room returns how long a request of a proof may wait in the client.
func room(bound time.Duration) time.Duration {
	const least, most = 500 * time.Millisecond, 5 * time.Second
	if bound == 0 {
		return most
	}
	return min(max(bound/10, least), most)
}

// briefly is a context that tells a rate limiter how long a request may wait there. It
// does not end then: once the request is sent other limits apply.
//
// The limiter of golang.org/x/time/rate, which is client-go's, looks at a context's
// deadline before it reserves anything. A context that just ended would leave its
// reservation in the queue.
type briefly struct {
	context.Context
	until time.Time
}

func (b briefly) Deadline() (time.Time, bool) { return b.until, true }

// crowded returns err, or what it means if the request never left the client.
func (t *trace) crowded(err error, plain bool) error {
	if err == nil || plain || t.left() || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %w", errNoRoom, err)
}
