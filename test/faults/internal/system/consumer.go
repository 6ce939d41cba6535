package system

import "sync"

// consumer is what a program does with what it is told by a cache: nothing, or
// what it should not.
type consumer struct {
	act func(Sample) // tells what a controller acted on

	mu        sync.Mutex
	blocked   chan struct{} // closed when it no longer is; nil if it is not
	panicking bool
}

// The ways in which consumers behave, as told to [Process.Consume].
const (
	Well      = "well"
	Blocked   = "blocked"
	Panicking = "panicking"
)

func (c *consumer) behave(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked != nil {
		close(c.blocked)
		c.blocked = nil
	}
	if how == Blocked {
		c.blocked = make(chan struct{})
	}
	c.panicking = how == Panicking
}

// handle is called with everything the cache tells.
func (c *consumer) handle() {
	c.mu.Lock()
	blocked, panicking := c.blocked, c.panicking
	c.mu.Unlock()
	if panicking {
		panic("a consumer that panics")
	}
	if blocked != nil {
		<-blocked
	}
}
