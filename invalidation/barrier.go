package invalidation

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Barrier calls those who must act on a revocation before readiness comes back,
// and says how long that must wait for them. The zero value is ready to use, and
// holds nothing back.
type Barrier struct {
	// Panicked is called with the value of a function's panic, which counts as its
	// return. Nil drops it. Set it before the first use.
	Panicked func(value any)
	// Lifted is called, without a lock, when the last function that was waited for
	// has returned. Nil is nobody to tell. Set it before the first use.
	Lifted func()

	mu    sync.Mutex
	gates []*gate
	owed  int           // calls that have not returned
	idle  chan struct{} // closed when none is owed; nil if none is
}

// gate is one registration. What is not constant is guarded by Barrier.mu.
type gate struct {
	limit time.Duration
	call  func(context.Context, *Revocation)
	owed  []call // not yet returned from; the first one is under way
}

type call struct {
	about *Revocation
	until time.Time // how long it holds readiness back
}

// Add registers f to be called with each revocation, one call at a time, in a
// goroutine of its own. Its context ends when limit has passed since the
// revocation, and so does its hold on readiness. The returned function removes f,
// and its hold; a call under way goes on, and no other is made. Add panics if f is nil or the limit is
// not positive.
func (b *Barrier) Add(limit time.Duration, f func(context.Context, *Revocation)) (remove func()) {
	if f == nil {
		panic("invalidation: a barrier's function is nil")
	}
	if limit <= 0 {
		panic("invalidation: a barrier's limit is not positive")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &gate{limit: limit, call: f}
	b.gates = append(b.gates, g)
	return func() { b.remove(g) }
}

// remove takes a gate away, with its hold and the calls that it has not begun.
func (b *Barrier) remove(g *gate) {
	held := b.Remaining()
	b.mu.Lock()
	b.gates = slices.DeleteFunc(b.gates, func(other *gate) bool { return other == g })
	if len(g.owed) > 1 {
		b.owed -= len(g.owed) - 1
		g.owed = g.owed[:1] // under way
	}
	b.mu.Unlock()
	if held > 0 {
		b.tell()
	}
}

// Empty reports whether nobody is registered.
func (b *Barrier) Empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.gates) == 0
}

// Revoked calls the functions, and does not wait for them. The caller leaves out
// tokens that never were ready.
func (b *Barrier) Revoked(r *Revocation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.gates {
		g.owed = append(g.owed, call{r, time.Now().Add(g.limit)})
		if b.owed++; b.idle == nil {
			b.idle = make(chan struct{})
		}
		if len(g.owed) == 1 {
			go b.run(g, g.owed[0])
		}
	}
}

// Remaining returns how long readiness must wait at most, unless Lifted is called
// before; zero if it need not wait.
func (b *Barrier) Remaining() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var most time.Duration
	for _, g := range b.gates {
		if n := len(g.owed); n > 0 {
			most = max(most, time.Until(g.owed[n-1].until))
		}
	}
	return most
}

// Wait returns when all calls have returned, or with ctx's cause when ctx ends
// first.
func (b *Barrier) Wait(ctx context.Context) error {
	b.mu.Lock()
	idle := b.idle
	b.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run makes one call, and then the next one that is owed to the gate. A function
// that ends its goroutine, as testing.T.FailNow does, has returned as well.
func (b *Barrier) run(g *gate, c call) {
	ctx, cancel := context.WithDeadlineCause(context.Background(), c.until, c.about)
	defer func() {
		v := recover()
		cancel()
		if v != nil && b.Panicked != nil {
			b.Panicked(v)
		}
		b.returned(g)
		b.tell()
	}()
	g.call(ctx, c.about)
}

func (b *Barrier) returned(g *gate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.owed = g.owed[1:]; len(g.owed) > 0 {
		go b.run(g, g.owed[0])
	}
	if b.owed--; b.owed == 0 {
		close(b.idle)
		b.idle = nil
	}
}

func (b *Barrier) tell() {
	if b.Lifted != nil && b.Remaining() == 0 {
		b.Lifted()
	}
}
