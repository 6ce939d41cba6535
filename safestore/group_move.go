package safestore

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// update makes the group's token follow those of the members. It is called with
// the lock of a member that has just moved, so that by the time that the move is
// done the group has moved as well.
func (g *Group) update() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closedLocked() {
		return
	}
	defer g.progress.send()
	now, ready := map[Readiness]*token.Token{}, len(g.members) > 0
	var reason invalidation.Reason
	var cause error
	for _, m := range g.members {
		t, granted := m.Token(), g.under[m.Readiness]
		now[m.Readiness] = t
		ready = ready && t.State() == token.Ready
		switch {
		case cause != nil || t == granted && t.State() == token.Ready:
		case granted != nil:
			reason, cause = whyEnded(granted), fmt.Errorf("%s: %w", m.Name(), granted.Cause())
		case t.State() != token.Ready:
			reason, cause = invalidation.Requested, fmt.Errorf("%s was added and is not ready", m.Name())
		}
	}
	if len(g.members) == 0 {
		reason, cause = invalidation.Requested, errNoMembers
	}
	switch current := g.tokens.Current(); {
	case current.State() == token.Pending && ready:
		if wait := g.barrier.Remaining(); wait > 0 {
			g.again.Reset(wait)
			return
		}
		g.under = now
		g.tokens.Ready(current)
		g.noteReadyLocked(current)
		g.hooks.Ready(current)
		g.followers.tell()
	case current.State() == token.Ready && cause == nil:
		g.under = now // with what was added
	case current.State() == token.Ready:
		r := g.endLocked(current, reason, cause)
		if ready && g.barrier.Empty() { // the member has gone from one token to the next without a gap
			g.under = now
			fresh, _ := g.tokens.Succeed(current, r, func(*token.Token) {})
			g.tellLocked(current, r)
			g.noteReadyLocked(fresh)
			g.hooks.Ready(fresh)
			return
		}
		g.under = map[Readiness]*token.Token{}
		g.tokens.Revoke(current, r)
		g.tellLocked(current, r)
		if ready {
			g.again.Reset(g.barrier.Remaining())
		}
	}
}

var errNoMembers = errors.New("there are no members")

// whyEnded returns the reason for which a member's token ended.
func whyEnded(t *token.Token) invalidation.Reason {
	var r *invalidation.Revocation
	if errors.As(t.Cause(), &r) {
		return r.Reason
	}
	return invalidation.Requested
}

// endLocked makes the revocation of a token that is about to end.
func (g *Group) endLocked(t *token.Token, reason invalidation.Reason, cause error) *invalidation.Revocation {
	r := &invalidation.Revocation{Generation: t.Generation(), Reason: reason, Cause: cause, Since: time.Now()}
	g.last.Store(r)
	return r
}

func (g *Group) noteReadyLocked(t *token.Token) {
	g.moves.add(Transition{At: time.Now(), Generation: t.Generation(), State: token.Ready})
}

func (g *Group) tellLocked(t *token.Token, r *invalidation.Revocation) {
	g.moves.add(revoked(r, t.WasReady()))
	if t.WasReady() {
		g.since = r.Since
		g.barrier.Revoked(r)
		g.hooks.Revoked(r)
	}
	g.followers.tell()
	g.progress.send()
}
