package safestore

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// SubscriptionStatus is what there is to know about a subscription at one moment.
// It holds no objects.
type SubscriptionStatus struct {
	// Name is the subscription's name.
	Name string
	// CaughtUp is the generation whose whole set the subscriber has dealt with; zero
	// if there is none or it is over.
	CaughtUp uint64
	// Lag is for how long, at most, a change that the subscriber has not dealt with
	// has been waiting for it; zero if there is none. That of a blocked subscriber
	// grows.
	Lag time.Duration
	// Changes is how many changes it was handed in all, since its loop began. Init,
	// InitDone and Revoked do not count.
	Changes uint64
}

// Status returns the subscription's status. It never waits.
func (s *Subscription[T]) Status() SubscriptionStatus {
	status := SubscriptionStatus{Name: s.name}
	if t := s.CaughtUp(); t != nil {
		status.CaughtUp = t.Generation()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status.Changes = s.changes
	if !s.behind.IsZero() {
		status.Lag = time.Since(s.behind)
	}
	return status
}

// subscriptions are those of a store whose loops are running. The zero value is
// ready to use.
type subscriptions[T Object] struct {
	mu      sync.Mutex
	running map[*Subscription[T]]struct{}
}

func (all *subscriptions[T]) add(s *Subscription[T]) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.running == nil {
		all.running = map[*Subscription[T]]struct{}{}
	}
	all.running[s] = struct{}{}
}

func (all *subscriptions[T]) remove(s *Subscription[T]) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.running, s)
}

// status returns the status of all, sorted by name.
func (all *subscriptions[T]) status() []SubscriptionStatus {
	all.mu.Lock()
	running := make([]*Subscription[T], 0, len(all.running))
	for s := range all.running {
		running = append(running, s)
	}
	all.mu.Unlock()
	list := make([]SubscriptionStatus, 0, len(running))
	for _, s := range running {
		list = append(list, s.Status())
	}
	slices.SortFunc(list, func(a, b SubscriptionStatus) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
