package safestore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// This file makes the group's token follow those of its members: see [generations]
// for when members tell of their moves. What a member has told is remembered, and
// its token is not asked: that of a member that is about to end is still ready.

// moveWith moves the group with a member, which holds its own lock.
func (g *Group) moveWith(m *member, to move) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.ready = to.ready
	switch {
	case !slices.Contains(g.members, m): // it is being added, or has left
	case to.ended != nil:
		g.updateLocked(to.ended.Reason, fmt.Errorf("%s: %w", m.Name(), to.ended))
	default:
		g.updateLocked("", nil)
	}
}

// settleWith wakes those who wait for a member's move. Its readers' errors tell of
// it now.
func (g *Group) settleWith() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
}

// update makes the group ready if nothing keeps it from that any more.
func (g *Group) update() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.updateLocked("", nil)
}

// updateLocked moves the group's token to where those of the members are. cause is
// what a token that is ready cannot outlive, and reason its kind; nil if nothing has
// happened that ends one.
func (g *Group) updateLocked(reason invalidation.Reason, cause error) {
	if g.isClosed() {
		return
	}
	notReady := func(m *member) bool { return m.ready == nil }
	ready := len(g.members) > 0 && !slices.ContainsFunc(g.members, notReady)
	current := g.tokens.Current()
	if current.State() == token.Ready && cause != nil {
		r := g.revocation(current, reason, cause)
		nothing := func(*token.Token) {} // a group's token stands for no data of its own
		if ready && g.succeed(current, r, Transition{}, nothing) {
			return
		}
		current = g.revoke(current, r, nil)
	}
	if current.State() == token.Ready || !ready {
		return
	}
	if wait := g.barrier.Remaining(); wait > 0 {
		g.again.Reset(wait)
		return
	}
	g.grant(current, Transition{})
}

var errNoMembers = errors.New("there are no members")
