package safestore

import (
	"slices"
	"sync"
)

// broadcast tells any number of waiters that something has changed, and costs
// next to nothing while nobody waits. The zero value is ready to use.
type broadcast struct {
	mu   sync.Mutex
	c    chan struct{} // closed by the next send; nil while nobody waits
	also []*broadcast  // told as well
}

// wait returns a channel that is closed by the next send. Get it before looking
// at what may change.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
	for _, other := range b.also {
		other.send()
	}
}

// forward has each send told to the waiters of another one as well, until it is
// forgotten. No two may forward to each other.
func (b *broadcast) forward(to *broadcast) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.also = append(b.also, to)
}

func (b *broadcast) forget(to *broadcast) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.also = slices.DeleteFunc(b.also, func(other *broadcast) bool { return other == to })
}
