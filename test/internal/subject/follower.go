package subject

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// Follower holds what a subscriber has been told of a store, and whether that could
// be so.
type Follower struct {
	mu     sync.Mutex
	held   Contents
	phase  safestore.ChangeType // Init, InitDone or Revoked
	wrong  []string
	events int
	done   chan struct{}
}

// Follow subscribes to a store until ctx ends.
func Follow(ctx context.Context, s Store) *Follower {
	f := &Follower{held: Contents{}, phase: safestore.Revoked, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		err := s.HandleAny(ctx, f.hear)
		f.note(err == nil, "it ended with: %v", err)
	}()
	return f
}

func (f *Follower) hear(what safestore.ChangeType, was, is safestore.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	switch what {
	case safestore.Init:
		f.noteLocked(f.phase == safestore.Revoked, "Init in phase %v", f.phase)
		f.phase = what
	case safestore.InitDone:
		f.noteLocked(f.phase == safestore.Init, "InitDone in phase %v", f.phase)
		f.phase = what
	case safestore.Revoked:
		f.noteLocked(f.phase != safestore.Revoked, "Revoked twice")
		f.phase = what
	case safestore.Added:
		_, has := f.held[safestore.Key(is)]
		f.noteLocked(!has, "%s was added twice", safestore.Key(is))
		f.held.Add(is)
	case safestore.Updated:
		f.noteLocked(f.held[safestore.Key(was)] == StateOf(was), "%s was updated from what it was not told", safestore.Key(was))
		f.noteLocked(was.GetUID() == is.GetUID(), "%s was updated to another object", safestore.Key(was))
		f.held.Add(is)
	case safestore.Deleted:
		f.noteLocked(f.held[safestore.Key(was)] == StateOf(was), "%s was deleted from what it was not told", safestore.Key(was))
		delete(f.held, safestore.Key(was))
	}
}

// Contents returns what the subscriber has.
func (f *Follower) Contents() Contents {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.held)
}

// Stop waits for the end of the subscription, whose context is over, and returns
// what was told that cannot be.
func (f *Follower) Stop() (wrong []string) {
	<-f.done
	return f.wrong
}

// Events returns how much was told.
func (f *Follower) Events() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}

func (f *Follower) note(ok bool, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteLocked(ok, format, args...)
}

func (f *Follower) noteLocked(ok bool, format string, args ...any) {
	if !ok {
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	}
}
