package safestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// Group is readiness over several stores, and other groups: it is ready while all
// its members are, and its token ends with the first of theirs. Nobody can find
// that a member's token is over, or work under it, and that of the group is not. So
// work that reads several stores runs under one token. Make one with [NewGroup]; all
// its methods may be called from any goroutine.
//
// Members keep their readiness to themselves: one that is not ready does not keep
// the others from being read, added, removed or closed. A group
// without members is not ready.
type Group struct {
	generations

	members []*member   // replaced, never changed; under mu
	again   *time.Timer // calls update when blocking hooks hold it back no more
}

// member is one membership in a group.
type member struct {
	Readiness
	ready *token.Token // the member's token, while it is ready; under the group's mu
	leave func()       // stops following it
}

// membership is held while any group gets a member or loses one, so that no two of
// them can become members of each other at the same time. Nothing else is waited for
// with it held, and nobody who moves a token takes it.
var membership sync.Mutex

// NewGroup returns a group of stores and groups. It holds on to its members, and
// they to it, until they are removed or it is closed. NewGroup fails if a member
// is nil, or if two have the same name.
func NewGroup(name string, members ...Readiness) (*Group, error) {
	if name == "" {
		return nil, errors.New("safestore: NewGroup without a name")
	}
	g := &Group{}
	g.begin(name)
	now := time.Now()
	g.since.Store(&now)
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
// the group itself and groups that it is part of, for a name that a member has
// already, and after Close.
func (g *Group) Add(m Readiness) error {
	if isNil(m) {
		return fmt.Errorf("safestore: group %s: the member is nil", g.name)
	}
	membership.Lock()
	defer membership.Unlock()
	if m.dependsOn(g) {
		return fmt.Errorf("safestore: group %s would be its own member", g.name)
	}
	added := &member{Readiness: m}
	added.leave = m.follow(follower{
		move:    func(to move) { g.moveWith(added, to) },
		settled: g.settleWith,
	})
	if err := g.add(added); err != nil {
		added.leave()
		return err
	}
	return nil
}

func (g *Group) add(m *member) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosed() {
		return fmt.Errorf("safestore: group %s is closed", g.name)
	}
	for _, other := range g.members {
		switch {
		case other.Readiness == m.Readiness:
			return fmt.Errorf("safestore: group %s has the member %q already", g.name, m.Name())
		case other.Name() == m.Name():
			return fmt.Errorf("safestore: group %s has a member %q already: give one a name of its own, "+
				"by Options.Name or NewGroup", g.name, m.Name())
		}
	}
	g.members = append(slices.Clip(g.members), m)
	if m.ready == nil {
		g.updateLocked(invalidation.Requested, fmt.Errorf("%s was added and is not ready", m.Name()))
	} else {
		g.updateLocked("", nil)
	}
	return nil
}

// Remove removes the member of that name, and reports whether there was one. If it
// was the last that the others waited for, the group is ready when Remove returns.
func (g *Group) Remove(name string) bool {
	membership.Lock()
	defer membership.Unlock()
	removed := g.remove(name)
	if removed == nil {
		return false
	}
	removed.leave()
	return true
}

func (g *Group) remove(name string) *member {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.Name() == name })
	if i < 0 {
		return nil
	}
	removed := g.members[i]
	g.members = slices.Concat(g.members[:i], g.members[i+1:])
	if len(g.members) == 0 {
		g.updateLocked(invalidation.Requested, errNoMembers)
	} else {
		g.updateLocked("", nil)
	}
	return removed
}

// Close ends the group: its token is revoked with [invalidation.Closed], and its
// members go on without it. Further calls do nothing.
func (g *Group) Close() { g.closeFor(nil) }

// closeFor is Close with a cause.
func (g *Group) closeFor(cause error) {
	membership.Lock()
	defer membership.Unlock()
	for _, m := range g.end(cause) {
		m.leave()
	}
}

// end closes the group, and returns those who were its members.
func (g *Group) end(cause error) (members []*member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isClosed() {
		return nil
	}
	g.again.Stop()
	members, g.members = g.members, nil
	g.close(g.revocation(g.tokens.Current(), invalidation.Closed, cause))
	return members
}

// Members returns the members, in the order in which they were added.
func (g *Group) Members() []Readiness {
	var all []Readiness
	for _, m := range g.current() {
		all = append(all, m.Readiness)
	}
	return all
}

func (g *Group) current() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members
}

// Status returns the group's own status.
func (g *Group) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.statusLocked()
}

// Stores returns the status of each store that the group depends on.
func (g *Group) Stores() []Status {
	var all []Status
	for _, m := range g.current() {
		all = append(all, m.Stores()...)
	}
	return all
}

func (g *Group) waitStarted(ctx context.Context) bool {
	for _, m := range g.current() {
		if !m.waitStarted(ctx) {
			return false
		}
	}
	return true
}

func (g *Group) dependsOn(other *Group) bool {
	depends := func(m *member) bool { return m.dependsOn(other) }
	return g == other || slices.ContainsFunc(g.current(), depends)
}
