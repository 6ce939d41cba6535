package safestore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/kube-safestore/kube-safestore/token"
)

// Snapshot returns the current view of all namespaces, without waiting. Its token
// is that of all of them together, and ends when that of any namespace does. Its
// resource version is empty, since each namespace is at one of its own; its age is
// that of the oldest.
func (n *Namespaces[T]) Snapshot() (*Snapshot[T], error) {
	for {
		if snapshot, ok := n.ready(); ok {
			return snapshot, nil
		}
		if err := n.NotReady(); err != nil {
			return nil, err
		}
	}
}

// WaitSnapshot returns what [Namespaces.Snapshot] does, waiting until all
// namespaces are ready.
func (n *Namespaces[T]) WaitSnapshot(ctx context.Context) (*Snapshot[T], error) {
	for {
		if _, err := n.WaitReady(ctx); err != nil {
			return nil, err
		}
		if snapshot, err := n.Snapshot(); err == nil {
			return snapshot, nil
		}
	}
}

// ReadySnapshot returns a snapshot of those namespaces that are ready, for programs
// that would rather work with some than with none, and a [*GroupError] that says
// which are not; nil if all are. Of what is in the others the snapshot says
// [ErrNotReady]. Its token is the current one of all of them together, whatever its
// state.
func (n *Namespaces[T]) ReadySnapshot() (*Snapshot[T], error) {
	t, members := n.Token(), n.members.Load()
	some := &namespaceScope{members.scope.name, maps.Clone(members.scope.namespaces)}
	failed := &GroupError{Group: n.Name(), Generation: t.Generation(), Size: len(members.names)}
	var parts []*Snapshot[T]
	for _, name := range members.names {
		part, err := members.stores[name].Snapshot()
		if err != nil {
			some.namespaces[name] = false
			failed.Members = append(failed.Members, err)
			continue
		}
		parts = append(parts, part)
	}
	all := joinParts(t, members, some, parts)
	if len(parts) < len(members.names) || len(parts) == 0 {
		return all, failed
	}
	return all, nil
}

// In returns the part of all namespaces in a snapshot of a group, as [Store.In]
// does: of those that there were when it was taken.
func (n *Namespaces[T]) In(joint *JointSnapshot) (*Snapshot[T], error) {
	members, ok := joint.parts[n].(*storeMembers[T])
	if !ok {
		return nil, fmt.Errorf("safestore: %s is not in the snapshot of the group", n.Name())
	}
	var parts []*Snapshot[T]
	for _, name := range members.names {
		part, err := members.stores[name].In(joint)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return joinParts(joint.token, members, members.scope, parts), nil
}

func (n *Namespaces[T]) takeInto(joint *JointSnapshot) (failed []error) {
	members := n.members.Load()
	joint.parts[n] = members
	for _, name := range members.names {
		failed = append(failed, members.stores[name].takeInto(joint)...)
	}
	return failed
}

// joined is the newest snapshot that was joined, and what of.
type joined[T Object] struct{ newest atomic.Pointer[jointParts[T]] }

type jointParts[T Object] struct {
	members *storeMembers[T]
	parts   []*Snapshot[T]
	whole   *Snapshot[T]
}

// ready returns the current snapshots of all namespaces as one, if they can be
// vouched for: each that of its store, all under one token that was ready after the
// last of them was loaded.
func (n *Namespaces[T]) ready() (*Snapshot[T], bool) {
	for {
		t, members := n.Token(), n.members.Load()
		parts := make([]*Snapshot[T], 0, len(members.names))
		for _, name := range members.names {
			part, ok := members.stores[name].ready()
			if !ok {
				return nil, false
			}
			parts = append(parts, part)
		}
		switch {
		case t.State() == token.Ready && len(parts) > 0:
			return n.joined.of(t, members, parts), true
		case t == n.Token() && members == n.members.Load():
			return nil, false
		}
	}
}

// of joins the parts, unless they are those of the last time.
func (j *joined[T]) of(t *token.Token, members *storeMembers[T], parts []*Snapshot[T]) *Snapshot[T] {
	last := j.newest.Load()
	if last != nil && last.members == members && last.whole.token == t && slices.Equal(last.parts, parts) {
		return last.whole
	}
	whole := joinParts(t, members, members.scope, parts)
	j.newest.Store(&jointParts[T]{members, parts, whole})
	return whole
}

// joinParts makes one snapshot of those of several namespaces.
func joinParts[T Object](
	t *token.Token, members *storeMembers[T], only *namespaceScope, parts []*Snapshot[T],
) *Snapshot[T] {
	all := &Snapshot[T]{token: t, complete: true, only: only, steps: members.steps, resource: resourceOf[T]()}
	var sets []indexedSet[T]
	for _, part := range parts {
		sets = append(sets, part.set)
		all.indexes, all.steps = part.indexes, all.steps+part.steps
		if part.at.After(all.at) {
			all.at = part.at
		}
		if all.proof.AsOf.IsZero() || part.proof.AsOf.Before(all.proof.AsOf) {
			all.proof = part.proof
		}
	}
	all.set = joinSets(sets)
	return all
}
