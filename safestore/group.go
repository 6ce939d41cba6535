package safestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// Group is readiness over several stores, and other groups: it is ready while all
// its members are, and its token ends, in the same step, when that of a member
// does. So work that reads several stores runs under one token. Make one with
// [NewGroup]; all its methods may be called from any goroutine.
//
// Members keep their readiness to themselves: one that is not ready does not keep
// the others from being read, added, removed or closed (C11, C58). A group
// without members is not ready.
type Group struct {
	name    string
	tokens  *token.Source
	hooks   invalidation.Hooks
	barrier invalidation.Barrier
	last    atomic.Pointer[invalidation.Revocation] // newest one; stored under mu

	// mu is taken by members that move, with their own lock held: nothing is asked
	// of a member under it but its name and token.
	mu        sync.Mutex
	members   []member                   // replaced, never changed
	under     map[Readiness]*token.Token // what the current token was granted under
	followers followers
	moves     transitions
	since     time.Time   // since when it is not ready, if it is not
	again     *time.Timer // calls update when nothing holds it back any more
	progress  broadcast   // tells of every move of a member
}

type member struct {
	Readiness
	leave func() // stops following it
}

// NewGroup returns a group of stores and groups. It holds on to its members, and
// they to it, until they are removed or it is closed. NewGroup fails if a member
// is nil, or if two have the same name.
func NewGroup(name string, members ...Readiness) (*Group, error) {
	if name == "" {
		return nil, errors.New("safestore: NewGroup without a name")
	}
	g := &Group{name: name, tokens: token.NewSource(context.Background()), under: map[Readiness]*token.Token{}, since: time.Now()}
	g.hooks.Panicked = func(value any) {
		klog.Background().Error(nil, "Hook panicked", "group", name, "panic", fmt.Sprint(value))
	}
	g.again = time.AfterFunc(time.Hour, g.update)
	g.again.Stop()
	g.barrier.Panicked, g.barrier.Lifted = g.hooks.Panicked, g.update
	for _, m := range members {
		if err := g.Add(m); err != nil {
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

// Add adds a member, at any time. A group that is ready stays so if the member is,
// and is revoked for [invalidation.Requested] if it is not. Add fails for nil, for
// the group itself, for a name that a member has already, and after Close.
func (g *Group) Add(m Readiness) error {
	switch {
	case isNil(m):
		return fmt.Errorf("safestore: group %s: the member is nil", g.name)
	case m.dependsOn(g):
		return fmt.Errorf("safestore: group %s would be its own member", g.name)
	}
	leave := m.follow(g.update)
	if err := g.add(member{m, leave}); err != nil {
		leave()
		return err
	}
	g.update()
	return nil
}

func (g *Group) add(m member) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closedLocked() {
		return fmt.Errorf("safestore: group %s is closed", g.name)
	}
	if slices.ContainsFunc(g.members, func(other member) bool { return other.Name() == m.Name() }) {
		return fmt.Errorf("safestore: group %s has a member %q already", g.name, m.Name())
	}
	g.members = append(slices.Clip(g.members), m)
	return nil
}

// Remove removes the member of that name, and reports whether there was one. If it
// was the last that the others waited for, the group is ready when Remove returns.
func (g *Group) Remove(name string) bool {
	g.mu.Lock()
	i := slices.IndexFunc(g.members, func(m member) bool { return m.Name() == name })
	if i < 0 {
		g.mu.Unlock()
		return false
	}
	removed := g.members[i]
	g.members = slices.Concat(g.members[:i], g.members[i+1:])
	delete(g.under, removed.Readiness)
	g.mu.Unlock()
	removed.leave()
	g.update()
	return true
}

// Close ends the group: its token is revoked with [invalidation.Closed], and its
// members go on without it. Further calls do nothing.
func (g *Group) Close() {
	g.mu.Lock()
	if g.closedLocked() {
		g.mu.Unlock()
		return
	}
	g.again.Stop()
	members := g.members
	g.members = nil
	current := g.tokens.Current()
	r := g.endLocked(current, invalidation.Closed, nil)
	g.tokens.Close(r)
	g.tellLocked(current, r)
	g.mu.Unlock()
	for _, m := range members {
		m.leave()
	}
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// Members returns the members, in the order in which they were added.
func (g *Group) Members() []Readiness {
	var all []Readiness
	for _, m := range g.current() {
		all = append(all, m.Readiness)
	}
	return all
}

// closedLocked reports whether the group is closed: its current token ends in no
// other way.
func (g *Group) closedLocked() bool { return g.tokens.Current().State() == token.Revoked }

func (g *Group) current() []member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members
}

// Token returns the current token. After Close it is the last one, revoked.
func (g *Group) Token() *token.Token { return g.tokens.Current() }

// OnReady registers f as [Store.OnReady] does.
func (g *Group) OnReady(f func(*token.Token)) (remove func()) { return g.hooks.OnReady(f) }

// OnRevoke registers f as [Store.OnRevoke] does. The cause of a revocation names
// the member.
func (g *Group) OnRevoke(f func(*invalidation.Revocation)) (remove func()) {
	return g.hooks.OnRevoke(f)
}

// OnRevokeSync registers f as [Store.OnRevokeSync] does: what it holds back is the
// readiness of the group, not that of its members.
func (g *Group) OnRevokeSync(limit time.Duration, f func(context.Context, *invalidation.Revocation)) (remove func()) {
	return g.barrier.Add(limit, f)
}

// Status returns the group's own status.
func (g *Group) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tokens.Current()
	status := Status{
		Name:        g.name,
		State:       t.State(),
		Generation:  t.Generation(),
		Revocation:  g.last.Load(),
		Transitions: g.moves.all(),
		Revocations: g.moves.revocations(),
	}
	status.Since = status.since(g.since)
	return status
}

// Stores returns the status of each store that the group depends on.
func (g *Group) Stores() []Status {
	var all []Status
	for _, m := range g.current() {
		all = append(all, m.Stores()...)
	}
	return all
}

func (g *Group) follow(f func()) (remove func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.followers.add(f)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.followers, one)
	}
}

func (g *Group) waitStarted(ctx context.Context) bool {
	for _, m := range g.current() {
		if !m.waitStarted(ctx) {
			return false
		}
	}
	return true
}

func (g *Group) each(f func(snapshotter)) {
	for _, m := range g.current() {
		m.each(f)
	}
}

func (g *Group) dependsOn(other *Group) bool {
	return g == other || slices.ContainsFunc(g.current(), func(m member) bool { return m.dependsOn(other) })
}
