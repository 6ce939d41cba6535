package subject

import (
	"context"
	"errors"
	"net"
	"sync"
)

var errClosed = errors.New("the client's connections are closed")

// connections are those of one client. Closing them does not depend on what
// HTTP/2 holds to be idle: a connection that is dialled for a request that is
// over by then outlives both.
type connections struct {
	mu     sync.Mutex
	open   map[*connection]bool
	closed bool
}

type connection struct {
	net.Conn
	of *connections
}

// dial is for rest.Config.Dial.
func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(errClosed, conn.Close())
	}
	if c.open == nil {
		c.open = map[*connection]bool{}
	}
	tracked := &connection{Conn: conn, of: c}
	c.open[tracked] = true
	return tracked, nil
}

// close closes all connections, those to come as well.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for conn := range c.open {
		_ = conn.Conn.Close()
	}
	c.open = nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
