package safestore

import "sync"

// broadcast tells any number of waiters that something has changed, and costs
// next to nothing while nobody waits. The zero value is ready to use.
type broadcast struct {
	mu sync.Mutex
	c  chan struct{} // closed by the next send; nil while nobody waits
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
}
