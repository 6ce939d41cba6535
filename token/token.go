package token

import (
	"context"
	"sync"
	"sync/atomic"
)

// State is where a token is in its life.
type State int

// The states of a token, in the only order in which they can follow each
// other; Ready may be passed over.
const (
	Pending State = iota // armed: not ready yet
	Ready                // granted: what it stands for can be trusted
	Revoked              // over, for good
)

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case Pending:
		return "Pending"
	case Ready:
		return "Ready"
	case Revoked:
		return "Revoked"
	default:
		return "Invalid"
	}
}

// Token is one generation of readiness. A Token is made by a [Source]; it is
// safe for concurrent use, and remains valid to ask after its end.
type Token struct {
	generation uint64

	// ctx ends with the token; its cause says why. It is the one place where
	// the end is recorded, so that State and Context cannot disagree.
	ctx    context.Context
	cancel context.CancelCauseFunc // called by end only

	// granted is set, and then ready closed, by the Source, under its lock.
	granted atomic.Bool
	ready   chan struct{}

	mu    sync.Mutex
	tied  map[*context.CancelCauseFunc]struct{} // under mu; those that end with it
	ended error                                 // under mu; set when nothing is tied any more
}

func newToken(parent context.Context, generation uint64) *Token {
	t := &Token{generation: generation, ready: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(parent)
	return t
}

// Generation returns the token's number. The first token of a Source is
// generation 1; numbers only grow.
func (t *Token) Generation() uint64 { return t.generation }

// Context returns a context that ends when the token is revoked, with the
// revocation as its [context.Cause]. It derives from the context that was given
// to [NewSource]. It is live while the token is Pending: work that needs a
// ready token waits for [Token.Ready] first.
func (t *Token) Context() context.Context { return t.ctx }

// Ready returns a channel that is closed when the token becomes ready. It stays
// closed after the token's revocation, and stays open for ever if the token is
// revoked before it was ready: select on Context().Done() as well.
func (t *Token) Ready() <-chan struct{} { return t.ready }

// State reports where the token is in its life. Ready is an answer about the
// moment of the call only; Revoked is final.
func (t *Token) State() State {
	switch {
	case t.ctx.Err() != nil:
		return Revoked
	case t.granted.Load():
		return Ready
	default:
		return Pending
	}
}

// WasReady reports whether the token was ever ready, before its end or now.
func (t *Token) WasReady() bool { return t.granted.Load() }

// Cause returns why the token was revoked, and nil while it is not.
func (t *Token) Cause() error { return context.Cause(t.ctx) }

// Tie returns a context derived from ctx that also ends, with the token's
// revocation as its cause, when the token is revoked: work under it ends with
// whichever comes first. Whoever finds the token revoked finds it over, and what is
// derived from it; only the end of the source's parent takes a moment. A ctx that is already over keeps its own cause. As with
// [context.WithCancel], call the returned function when the work is done.
func (t *Token) Tie(ctx context.Context) (context.Context, context.CancelFunc) {
	tied, cancel := context.WithCancelCause(ctx)
	if ended := t.tie(&cancel); ended != nil {
		cancel(ended)
		return tied, func() {}
	}
	// The end of the source's parent does not come by end.
	stop := context.AfterFunc(t.ctx, func() { cancel(t.Cause()) })
	if t.ctx.Err() != nil {
		cancel(t.Cause()) // AfterFunc does it in its own time
	}
	return tied, func() {
		stop()
		t.untie(&cancel)
		cancel(context.Canceled)
	}
}

// tie has a function called with the cause when the token ends, or returns the cause
// if it is ending.
func (t *Token) tie(cancel *context.CancelCauseFunc) (ended error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return t.ended
	}
	if t.tied == nil {
		t.tied = map[*context.CancelCauseFunc]struct{}{}
	}
	t.tied[cancel] = struct{}{}
	return nil
}

func (t *Token) untie(cancel *context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tied, cancel)
}

// end ends what is tied to the token, and then the token: in the other order
// somebody could see that it is over, and work under it not yet. It is called by the
// Source only.
func (t *Token) end(cause error) {
	t.mu.Lock()
	tied := t.tied
	t.tied, t.ended = nil, cause
	t.mu.Unlock()
	for cancel := range tied {
		(*cancel)(cause)
	}
	t.cancel(cause)
}
