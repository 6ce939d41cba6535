package main

import (
	"crypto/rand"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// proxy stands between readers and the API server, as load balancers and meshes
// do, and has the faults of some: it can stall the watches that are open, while
// their connections live and everything else passes.
type proxy struct {
	down atomic.Bool // nothing passes

	server    *http.Server
	address   string
	key       string // readers know it, nobody else on this machine does
	target    *url.URL
	transport http.RoundTripper // with the reader's credentials
	served    chan error

	mu       sync.Mutex
	watching map[*held]string // open watches, by who asked for them
}

// startProxy starts a proxy to the server that config gives access to.
func startProxy(config *rest.Config) (*proxy, error) {
	p := &proxy{key: rand.Text(), served: make(chan error, 1), watching: map[*held]string{}}
	var err error
	if p.target, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, err
	}
	if p.transport, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.address = "http://" + listener.Addr().String()
	quiet := log.New(io.Discard, "", 0)
	p.server = &http.Server{ErrorLog: quiet, Handler: p.guard(&httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: p.hold,
		Transport:      p.transport,
		FlushInterval:  -1, // at once: events must not wait for more of them
		ErrorLog:       quiet,
	})}
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// config is the access through the proxy, for a reader of that name.
func (p *proxy) config(name string) *rest.Config {
	return &rest.Config{Host: p.address, BearerToken: p.key, UserAgent: name}
}

// guard lets only readers in, and nobody while the proxy is down.
func (p *proxy) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+p.key:
			http.Error(w, "not for you", http.StatusForbidden)
		case p.down.Load():
			http.Error(w, "no server to go to", http.StatusBadGateway)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// rewrite leaves it to the transport to say who asks.
func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.target)
	for name := range r.Out.Header {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") {
			r.Out.Header.Del(name)
		}
	}
}

// hold makes what a watch brings something that can be held back.
func (p *proxy) hold(response *http.Response) error {
	request := response.Request
	if !request.URL.Query().Has("watch") || response.StatusCode != http.StatusOK {
		return nil
	}
	h := &held{ReadCloser: response.Body, gone: request.Context().Done()}
	h.close = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watching, h)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching[h] = request.UserAgent()
	response.Body = h
	return nil
}

// stall holds back, from now on, what the open watches bring, if each of the
// named readers has one. It reports whether that is so.
func (p *proxy) stall(readers ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := slices.Collect(maps.Values(p.watching))
	for _, reader := range readers {
		if !slices.Contains(names, reader) {
			return false
		}
	}
	for h := range p.watching {
		h.stalled.Store(true)
	}
	return true
}

// stop ends the proxy and its connections.
func (p *proxy) stop() error {
	err := p.server.Close()
	<-p.served
	if closer, ok := p.transport.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
	return err
}

// held is what a watch brings.
type held struct {
	io.ReadCloser
	gone    <-chan struct{} // the reader is
	stalled atomic.Bool
	close   func()
}

// Read implements io.Reader. What comes once the watch is stalled waits until the
// reader gives up.
func (h *held) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	if h.stalled.Load() {
		<-h.gone
		return 0, io.ErrClosedPipe
	}
	return n, err
}

// Close implements io.Closer.
func (h *held) Close() error {
	h.close()
	return h.ReadCloser.Close()
}
