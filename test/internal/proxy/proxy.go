// Package proxy is a TCP proxy on localhost that breaks the connections through
// it on demand. It knows nothing of what it carries.
//
// # Concurrency
//
// All methods may be called from any goroutine. When Close returns, no goroutine
// of the proxy is left.
package proxy

import (
	"errors"
	"net"
	"sync"
)

// Proxy carries connections to a target. Make one with [Start].
type Proxy struct {
	listener net.Listener
	loops    sync.WaitGroup

	mu      sync.Mutex
	moved   *sync.Cond // stalled or links changed
	target  string
	refuses bool
	stalled bool
	left    int64 // bytes from the server until it stalls by itself; negative for no limit
	links   map[*link]bool
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	cut            bool // under mu of the proxy
}

// Start returns a proxy to the target, an address such as 127.0.0.1:6443.
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, left: -1, links: map[*link]bool{}}
	p.moved = sync.NewCond(&p.mu)
	p.loops.Go(p.accept)
	return p, nil
}

// Address returns where the proxy listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Redirect sends the connections made from now on to another target. Those that
// exist stay where they are: Cut moves them.
func (p *Proxy) Redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Cut breaks all connections, as a lost network does that tells both ends, and
// returns how many there were. New ones are carried.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.links)
	for l := range p.links {
		p.cutLocked(l)
	}
	return n
}

// Refuse breaks all connections and every new one, until Accept.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.refuses = true
	p.mu.Unlock()
	p.Cut()
}

// Accept ends Refuse.
func (p *Proxy) Accept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = false
}

// Stall keeps connections, old and new, but carries nothing, until Resume: a
// network that loses every packet. What was sent meanwhile arrives after it.
func (p *Proxy) Stall() { p.stall(true) }

// StallAfter is Stall as soon as so many more bytes have come from the target.
func (p *Proxy) StallAfter(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = bytes
}

// Stalled reports whether nothing is carried.
func (p *Proxy) Stalled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled
}

// Resume ends Stall.
func (p *Proxy) Resume() { p.stall(false) }

func (p *Proxy) stall(stalled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled, p.left = stalled, -1
	p.moved.Broadcast()
}

// Close breaks all connections and ends the proxy.
func (p *Proxy) Close() error {
	p.Refuse()
	err := p.listener.Close()
	p.loops.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target, refuses := p.target, p.refuses
		p.mu.Unlock()
		if refuses {
			reset(client)
			continue
		}
		p.loops.Go(func() { p.carry(client, target) })
	}
}

func (p *Proxy) carry(client net.Conn, target string) {
	server, err := net.Dial("tcp", target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{client: client, server: server}
	p.mu.Lock()
	p.links[l] = true
	if p.refuses {
		p.cutLocked(l) // since it was accepted
	}
	p.mu.Unlock()
	p.loops.Go(func() { p.copy(l, client, server) })
	p.copy(l, server, client)
}

// copy carries one direction, and ends both.
func (p *Proxy) copy(l *link, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.pass(l) {
			return
		}
		if from == l.server {
			p.spend(int64(n))
		}
		if n > 0 {
			if _, writeErr := to.Write(buffer[:n]); err == nil {
				err = writeErr
			}
		}
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked(l)
}

// pass waits while the proxy is stalled, and reports whether the link still
// exists.
func (p *Proxy) pass(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !l.cut {
		p.moved.Wait()
	}
	return !l.cut
}

// spend counts bytes from the server, for StallAfter.
func (p *Proxy) spend(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left < 0 {
		return
	}
	if p.left -= n; p.left <= 0 {
		p.stalled, p.left = true, -1
	}
}

func (p *Proxy) cutLocked(l *link) {
	if l.cut {
		return
	}
	l.cut = true
	delete(p.links, l)
	reset(l.client)
	reset(l.server)
	p.moved.Broadcast()
}

// reset closes a connection so that the other end learns of it at once, and
// nothing of what is on its way arrives.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
