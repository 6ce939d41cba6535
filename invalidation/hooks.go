package invalidation

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-safestore/kube-safestore/token"
)

// hookPatience is how long the hooks of one transition may take together before
// those of the next one are called without waiting for the slow ones.
const hookPatience = 5 * time.Second

// Hooks calls what programs have registered to hear of readiness and of its
// end. The zero value is ready to use.
//
// Every hook hears the transitions in their order, one call at a time, from a
// goroutine that holds no lock. While no hook takes longer than five seconds,
// the hooks of one transition have all returned before those of the next one
// are called, so that a revoke hook never overlaps a ready hook. A hook that
// takes longer delays nobody but itself: it hears the rest later, still in
// order. A hook that panics is reported to Panicked and stays registered.
//
// Transitions a slow hook has not heard of wait in memory, a few words each;
// objects do not.
type Hooks struct {
	// Panicked is called with the value of a hook's panic. Nil drops it. Set it
	// before the first use.
	Panicked func(value any)

	mu    sync.Mutex
	hooks []*hook       // registered, in order of registration
	queue []transition  // not yet handed to the hooks
	last  transition    // newest one handed to the hooks
	done  chan struct{} // closed when the dispatching goroutine ends; nil if none runs
}

// transition is one edge of readiness: exactly one of ready and revoked is set.
type transition struct {
	ready   *token.Token
	revoked *Revocation
	only    *hook // nil for all
}

// hook is one registration. Its fields are guarded by Hooks.mu, call excepted.
type hook struct {
	call    func(transition)
	removed bool
	backlog []delivery
	busy    bool // a goroutine is working off the backlog
}

// delivery is a transition for one hook, and what to call when it was heard.
type delivery struct {
	transition
	heard func()
}

// OnReady registers f to be called with each token that becomes ready,
// beginning with the current one if it is ready already. The returned function
// removes f: once it has returned no other call is made than one that is under way.
// It may be called from inside f. OnReady panics if f is nil.
func (h *Hooks) OnReady(f func(*token.Token)) (remove func()) {
	if f == nil {
		panic("invalidation: OnReady with a nil function")
	}
	return h.add(func(t transition) {
		if t.ready != nil {
			f(t.ready)
		}
	})
}

// OnRevoke registers f to be called with each revocation of a token that was
// ready. The returned function removes f, as with OnReady. OnRevoke panics if f
// is nil.
func (h *Hooks) OnRevoke(f func(*Revocation)) (remove func()) {
	if f == nil {
		panic("invalidation: OnRevoke with a nil function")
	}
	return h.add(func(t transition) {
		if t.revoked != nil {
			f(t.revoked)
		}
	})
}

func (h *Hooks) add(call func(transition)) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := &hook{call: call}
	h.hooks = append(h.hooks, k)
	if h.last.ready != nil {
		// Before what is queued, and waited for like any other, so that it does
		// not overlap with the revocation that follows.
		h.queue = slices.Insert(h.queue, 0, transition{ready: h.last.ready, only: k})
		h.startLocked()
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		k.removed = true
		h.hooks = slices.DeleteFunc(h.hooks, func(other *hook) bool { return other == k })
	}
}

// Ready tells the hooks that t is ready. It does not wait for them.
func (h *Hooks) Ready(t *token.Token) { h.enqueue(transition{ready: t}) }

// Revoked tells the hooks that the token they last heard of is over. It does
// not wait for them. The caller leaves out tokens that never were ready.
func (h *Hooks) Revoked(r *Revocation) { h.enqueue(transition{revoked: r}) }

func (h *Hooks) enqueue(t transition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, t)
	h.startLocked()
}

// startLocked starts the dispatching goroutine if none runs. mu is held.
func (h *Hooks) startLocked() {
	if h.done == nil {
		h.done = make(chan struct{})
		go h.dispatch(h.done)
	}
}

// dispatch hands out what is queued, and ends when nothing is left.
func (h *Hooks) dispatch(done chan struct{}) {
	defer close(done)
	for {
		h.mu.Lock()
		if len(h.queue) == 0 {
			h.queue = nil
			h.done = nil
			h.mu.Unlock()
			return
		}
		next := h.queue[0]
		h.queue = h.queue[1:]
		hooks := []*hook{next.only}
		if next.only == nil {
			h.last = next
			hooks = h.hooks
		}
		all := newRollCall(len(hooks))
		for _, k := range hooks {
			h.deliverLocked(k, delivery{next, all.heard})
		}
		h.mu.Unlock()
		all.wait(hookPatience)
	}
}

// rollCall counts the hooks that have heard of one transition.
type rollCall struct {
	missing atomic.Int64
	done    chan struct{} // closed when none is missing
}

func newRollCall(hooks int) *rollCall {
	c := &rollCall{done: make(chan struct{})}
	c.missing.Store(int64(hooks) + 1) // one more, so that no hooks is no special case
	c.heard()
	return c
}

func (c *rollCall) heard() {
	if c.missing.Add(-1) == 0 {
		close(c.done)
	}
}

func (c *rollCall) wait(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
}

// deliverLocked adds d to k's backlog. Hooks.mu is held.
func (h *Hooks) deliverLocked(k *hook, d delivery) {
	k.backlog = append(k.backlog, d)
	if !k.busy {
		k.busy = true
		go h.work(k)
	}
}

// work calls k with its backlog until that is empty.
func (h *Hooks) work(k *hook) {
	for {
		h.mu.Lock()
		if len(k.backlog) == 0 {
			k.busy = false
			h.mu.Unlock()
			return
		}
		d := k.backlog[0]
		k.backlog = k.backlog[1:]
		removed := k.removed
		h.mu.Unlock()
		if removed {
			d.heard()
		} else {
			h.call(k, d)
		}
	}
}

// call calls k. It does not return if the hook has ended its goroutine, as
// testing.T.FailNow does: another one goes on with the backlog.
func (h *Hooks) call(k *hook, d delivery) {
	returned := false
	defer func() {
		v := recover()
		d.heard()
		switch {
		case v != nil && h.Panicked != nil:
			h.Panicked(v)
		case v == nil && !returned:
			go h.work(k)
		}
	}()
	k.call(d.transition)
	returned = true
}

// Wait returns when the hooks have heard of everything that was told before, or
// have used up their patience, or with ctx's cause when ctx ends first.
func (h *Hooks) Wait(ctx context.Context) error {
	h.mu.Lock()
	done := h.done
	h.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
