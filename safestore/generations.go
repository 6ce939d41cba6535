package safestore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// generations are the tokens of a store or of a group, one after the other, and
// those who hear of their moves. Its owner decides when a token moves and what it
// stands for; the order in which a move is made known is decided here alone:
//
//   - To grant: the token becomes ready, then the groups that follow it move, then
//     waiting readers wake up, and the hooks are called.
//   - To revoke, and to close: the revocation is put where readers look for it, the
//     groups end, data is dropped if it is to be, the token ends, and the hooks are
//     called.
//   - To succeed, which leaves no gap: the next set and its token are stored, the
//     groups go on to tokens of their own, the old token ends, and the hooks are
//     called.
//
// So a group is ready only while all its members are: it becomes ready after the
// last of them, and ends before the first, whoever looks.
type generations struct {
	name    string
	tokens  *token.Source
	hooks   invalidation.Hooks
	barrier invalidation.Barrier

	last  atomic.Pointer[invalidation.Revocation] // newest one; stored under mu
	since atomic.Pointer[time.Time]               // see Status.Since; nil before Run of a store

	// mu is held while the token is moved, so that everybody hears of the moves in
	// their order. Readers do not take it. A group's is taken with that of a member
	// held, and never the other way round.
	mu          sync.Mutex
	followers   followers   // under mu
	transitions transitions // under mu

	closed   chan struct{} // closed by close
	progress broadcast     // tells of every move, and of what else its owner's readers wait for
}

// begin makes the first token, which waits to be granted.
func (g *generations) begin(name string) {
	g.name, g.closed = name, make(chan struct{})
	g.tokens = token.NewSource(context.Background()) // ended by close, with the reason
}

// Token returns the current token: ready if reads are answered, else the one that
// is waited for. After the end it is the last one, revoked.
func (g *generations) Token() *token.Token { return g.tokens.Current() }

// Name returns how the store or the group is called in logs, errors and status:
// [Options].Name or the type of the store's objects, or what [NewGroup] was given.
func (g *generations) Name() string { return g.name }

// OnReady registers f to be called with each token that becomes ready, beginning
// with the current one if it is ready already. The returned function removes f.
// What is promised about the order of calls, slow and panicking functions is
// said at [invalidation.Hooks]. OnReady panics if f is nil.
func (g *generations) OnReady(f func(*token.Token)) (remove func()) { return g.hooks.OnReady(f) }

// OnRevoke registers f to be called each time a token that was ready is revoked.
// By then reads fail already, and contexts derived from the token are over. The
// cause of a group's revocation names the member. The rest is as with OnReady.
func (g *generations) OnRevoke(f func(*invalidation.Revocation)) (remove func()) {
	return g.hooks.OnRevoke(f)
}

// OnRevokeSync registers f to be called each time a token that was ready is
// revoked, for those who must act before anybody reads again: no further token
// becomes ready, and so no read succeeds, until f has returned, or limit has
// passed since the revocation, when its context ends. By the time it is called reads
// fail already; a read by f itself waits, or fails. What it holds back of a group
// is the group's readiness, not that of its members.
//
// f is called in a goroutine of its own, one call at a time; several functions do
// not wait for each other. One that panics is reported and has returned. When a
// store is closed its Run waits for f as well. While a function is registered, reads
// fail during a relist also with GaplessRelist. OnRevokeSync panics if f is nil or
// the limit is not positive. The returned function removes f.
func (g *generations) OnRevokeSync(
	limit time.Duration, f func(context.Context, *invalidation.Revocation),
) (remove func()) {
	return g.barrier.Add(limit, f)
}

// grant makes the current token ready, and reports whether it was waiting for that.
// made says what the token stands for.
func (g *generations) grant(t *token.Token, made Transition) bool {
	if !g.tokens.Ready(t) {
		return false
	}
	g.followers.move(move{ready: t})
	g.noteReady(t, made)
	g.hooks.Ready(t)
	g.settle()
	return true
}

// succeed ends a ready token, and has the next one ready from its beginning. publish
// puts in place what that one stands for. It reports false, and does nothing, if
// somebody must act between the two.
func (g *generations) succeed(
	old *token.Token, r *invalidation.Revocation, made Transition, publish func(fresh *token.Token),
) bool {
	if !g.barrier.Empty() {
		return false
	}
	g.explain(old, r)
	fresh, ok := g.tokens.Succeed(old, r, publish, func(fresh *token.Token) {
		g.followers.move(move{ready: fresh, ended: r})
	})
	if !ok {
		return false
	}
	g.transitions.add(revoked(r, true))
	g.noteReady(fresh, made)
	g.hooks.Revoked(r)
	g.hooks.Ready(fresh)
	g.settle()
	return true
}

// revoke ends the current token and returns the next one. drop takes away the data
// that the token stands for; nil if it is to be left.
func (g *generations) revoke(
	t *token.Token, r *invalidation.Revocation, drop func(),
) (fresh *token.Token) {
	g.explain(t, r)
	g.followers.move(move{ended: r})
	if drop != nil {
		drop()
	}
	fresh, _ = g.tokens.Revoke(t, r)
	g.noteEnd(t, r)
	g.settle()
	return fresh
}

// close ends the current token. No other follows.
func (g *generations) close(r *invalidation.Revocation) {
	t := g.tokens.Current()
	g.explain(t, r)
	g.followers.move(move{ended: r})
	g.tokens.Close(r)
	close(g.closed)
	g.noteEnd(t, r)
	g.settle()
}

// revocation makes the end of a token.
func (g *generations) revocation(
	t *token.Token, reason invalidation.Reason, cause error,
) *invalidation.Revocation {
	return &invalidation.Revocation{
		Generation: t.Generation(), Reason: reason, Cause: cause, Since: time.Now(),
	}
}

// isClosed reports whether the current token has ended, which it does in no other way.
func (g *generations) isClosed() bool { return g.tokens.Current().State() == token.Revoked }

// explain puts a revocation where readers find it who are woken by the end of the
// token.
func (g *generations) explain(t *token.Token, r *invalidation.Revocation) {
	if t.WasReady() {
		g.since.Store(&r.Since)
	}
	g.last.Store(r)
}

func (g *generations) noteReady(t *token.Token, made Transition) {
	made.At, made.Generation, made.State = time.Now(), t.Generation(), token.Ready
	g.transitions.add(made)
}

func (g *generations) noteEnd(t *token.Token, r *invalidation.Revocation) {
	g.transitions.add(revoked(r, t.WasReady()))
	if t.WasReady() {
		g.barrier.Revoked(r)
		g.hooks.Revoked(r)
	}
}

// settle wakes those who wait for a move, when it is done.
func (g *generations) settle() {
	g.progress.send()
	g.followers.settle()
}

// hookGrace is how long Run waits at its end for hooks to have heard of it.
const hookGrace = time.Second

// waitForHooks returns when the hooks have heard of the end of the last token, or
// have taken too long; blocking hooks have until their limits.
func (g *generations) waitForHooks(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	hooks, cancel := context.WithTimeout(ctx, hookGrace)
	defer cancel()
	_ = g.hooks.Wait(hooks) // a hook that is slower goes on by itself
	barrier, cancel := context.WithTimeout(ctx, g.barrier.Remaining())
	defer cancel()
	_ = g.barrier.Wait(barrier)
}

func (g *generations) follow(one follower) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	added := g.followers.add(one)
	var now move
	if t := g.tokens.Current(); t.State() == token.Ready {
		now.ready = t
	}
	one.move(now)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.followers, added)
	}
}
