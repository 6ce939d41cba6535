package wiretest

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network is the way between clients and the server: connections that are pairs
// of buffers. It is a net.Listener for the server, and dial is for clients.
type network struct {
	mu      sync.Mutex
	changed *sync.Cond // anything below, or in a conn, has changed
	backlog []net.Conn // dialled, not yet accepted
	conns   []*conn    // the clients' ends
	closed  bool       // for good
	down    bool       // connections are refused
	dark    bool       // nothing gets through, in either direction; nobody is told
}

func newNetwork() *network {
	n := &network{}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// update changes the state of the network.
func (n *network) update(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.changed.Broadcast()
}

// wake returns after having arranged that waiters look again at t.
func (n *network) wake(t time.Time) (stop func() bool) {
	return time.AfterFunc(time.Until(t), func() { n.update(func() {}) }).Stop
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	defer context.AfterFunc(ctx, func() { n.update(func() {}) })()
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.dark && !n.closed && ctx.Err() == nil {
		n.changed.Wait()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n.down || n.closed {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	up, down := &half{}, &half{}
	client := &conn{network: n, in: down, out: up}
	n.conns = append(n.conns, client)
	n.backlog = append(n.backlog, &conn{network: n, in: up, out: down})
	n.changed.Broadcast()
	return client, nil
}

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.backlog) == 0 && !n.closed {
		n.changed.Wait()
	}
	if n.closed {
		return nil, net.ErrClosed
	}
	c := n.backlog[0]
	n.backlog = n.backlog[1:]
	return c, nil
}

// Close implements net.Listener: it ends the network, with all connections.
func (n *network) Close() error {
	n.cut()
	n.update(func() { n.closed, n.dark = true, false })
	return nil
}

// cut breaks all connections off; what was under way is lost.
func (n *network) cut() {
	n.update(func() {
		for _, c := range n.conns {
			c.in.closed, c.in.data = true, nil
			c.out.closed, c.out.data = true, nil
		}
		n.conns, n.backlog = nil, nil
	})
}

// Addr implements net.Listener.
func (n *network) Addr() net.Addr { return memory{} }

type memory struct{}

func (memory) Network() string { return "memory" }
func (memory) String() string  { return "memory" }

// half is one direction of a connection. It is guarded by network.mu.
type half struct {
	data   []byte
	closed bool
}

// conn is one end of a connection.
type conn struct {
	*network
	in, out *half

	// Guarded by network.mu.
	over     bool // closed at this end
	deadline time.Time
	stop     func() bool
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.over:
			return 0, net.ErrClosed
		case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
			return 0, os.ErrDeadlineExceeded
		case !c.dark && len(c.in.data) > 0:
			n := copy(p, c.in.data)
			c.in.data = c.in.data[n:]
			return n, nil
		case !c.dark && c.in.closed:
			return 0, io.EOF
		}
		c.changed.Wait()
	}
}

// Write implements net.Conn. It never blocks: the buffers have no limit.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return 0, net.ErrClosed
	case c.out.closed:
		return 0, &net.OpError{Op: "write", Net: "memory", Err: syscall.EPIPE}
	}
	c.out.data = append(c.out.data, p...)
	c.changed.Broadcast()
	return len(p), nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.update(func() {
		c.over, c.out.closed = true, true
		if c.stop != nil {
			c.stop()
		}
	})
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.update(func() {
		if c.stop != nil {
			c.stop()
			c.stop = nil
		}
		c.deadline = t
		if !t.IsZero() && !c.over {
			c.stop = c.wake(t)
		}
	})
	return nil
}

func (c *conn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
func (c *conn) LocalAddr() net.Addr              { return memory{} }
func (c *conn) RemoteAddr() net.Addr             { return memory{} }
