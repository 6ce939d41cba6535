package safestore

import (
	"context"
	"fmt"
	"maps"

	"github.com/kube-safestore/kube-safestore/token"
)

// JointSnapshot is a snapshot of each store of a group, taken while all of them
// were ready, for decisions that read several stores. Get that of one store
// with [Store.In]:
//
//	joint, err := group.Snapshot()
//	pods, err := podStore.In(joint)
//	nodes, err := nodeStore.In(joint)
//
// Each is at a version of its own: API servers do not order the versions of
// different resources. Like what it is made of, it never changes.
type JointSnapshot struct {
	token *token.Token
	// parts has the snapshot of each store, nil of one that was not ready, and of each
	// Namespaces the stores that it had.
	parts    map[Readiness]any
	versions map[string]string // by the stores' names
	names    names
}

// Token returns the group's token under which the snapshot was taken: it ends when
// that of any of the stores does.
func (j *JointSnapshot) Token() *token.Token { return j.token }

// ResourceVersions returns the version that the snapshot of each store reflects,
// by the stores' names. Of stores of one name, in groups of the group, those after
// the first are told apart by a number ("pods#2"), in the order of the members.
func (j *JointSnapshot) ResourceVersions() map[string]string { return maps.Clone(j.versions) }

// In returns the store's part of a snapshot of a group. It fails if the store is
// not part of it.
func (s *Store[T]) In(joint *JointSnapshot) (*Snapshot[T], error) {
	snapshot, ok := joint.parts[s].(*Snapshot[T])
	if !ok {
		return nil, fmt.Errorf("safestore: %s is not in the snapshot of the group", s.name)
	}
	return snapshot, nil
}

// Snapshot returns the current snapshots of all stores of the group, without
// waiting. It fails with a [*GroupError] if any member is not ready.
func (g *Group) Snapshot() (*JointSnapshot, error) {
	for {
		t, err := g.ready()
		if err != nil {
			return nil, err
		}
		joint, failed := g.take(t)
		// Still ready after the last was taken: they were ready together.
		if len(failed) == 0 && t.State() == token.Ready {
			return joint, nil
		}
	}
}

// WaitSnapshot returns what [Group.Snapshot] does, waiting until all members are
// ready. Its errors are those of [Group.WaitReady].
func (g *Group) WaitSnapshot(ctx context.Context) (*JointSnapshot, error) {
	for {
		if _, err := g.WaitReady(ctx); err != nil {
			return nil, err
		}
		if joint, err := g.Snapshot(); err == nil {
			return joint, nil
		}
	}
}

// ReadySnapshot returns the snapshots of those stores that are ready, for programs
// that would rather work with some than with none, and a [*GroupError] that
// says which are not; nil if all are. The token is the group's current one,
// whatever its state: rely on those of the single snapshots.
func (g *Group) ReadySnapshot() (*JointSnapshot, error) {
	joint, failed := g.take(g.tokens.Current())
	if size := len(g.current()); len(failed) > 0 || size == 0 {
		return joint, &GroupError{Group: g.name, Generation: joint.token.Generation(), Members: failed, Size: size}
	}
	return joint, nil
}

// take takes the snapshots of all stores that are ready, and returns the errors of
// those that are not.
func (g *Group) take(t *token.Token) (joint *JointSnapshot, failed []error) {
	joint = &JointSnapshot{token: t, parts: map[Readiness]any{}, versions: map[string]string{}, names: names{}}
	return joint, g.takeInto(joint)
}

func (g *Group) takeInto(joint *JointSnapshot) (failed []error) {
	for _, m := range g.current() {
		failed = append(failed, m.takeInto(joint)...)
	}
	return failed
}

func (s *Store[T]) takeInto(joint *JointSnapshot) (failed []error) {
	if _, taken := joint.parts[s]; taken { // it is in several groups
		return nil
	}
	joint.parts[s] = nil
	name := joint.names.unique(s.name)
	snapshot, err := s.Snapshot()
	if err != nil {
		return []error{err}
	}
	joint.parts[s], joint.versions[name] = snapshot, snapshot.version
	return nil
}
