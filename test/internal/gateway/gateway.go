package gateway

import (
	"bufio"
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Gateway carries requests to an API server. Make one with [Start].
type Gateway struct {
	server *httptest.Server

	mu        sync.Mutex
	route     func(url.Values) *upstream // by the query
	upstreams []*upstream
	edit      func(url.Values)                   // what is asked
	answer    func(*http.Request) *http.Response // in the server's place; nil to ask it
	events    func() EventEditor                 // of watches; nil to leave them as they are
	stallNew  bool
	streams   map[*stream]bool
	open      sync.WaitGroup // streams
}

// upstream is the way to an API server.
type upstream struct {
	url       *url.URL
	transport http.RoundTripper
}

// Start returns a gateway to the API server that config gives access to.
func Start(config *rest.Config) (*Gateway, error) {
	g := &Gateway{streams: map[*stream]bool{}, edit: func(url.Values) {}}
	if err := g.Route(func(url.Values) int { return 0 }, config); err != nil {
		return nil, err
	}
	g.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:        g.rewrite,
		Transport:      g,
		ModifyResponse: g.modify,
		FlushInterval:  -1, // at once
		ErrorLog:       log.New(io.Discard, "", 0),
	})
	g.server.EnableHTTP2 = true
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.StartTLS()
	return g, nil
}

// Config returns the access to the API server through the gateway, without
// client-side rate limit and with nobody's credentials.
func (g *Gateway) Config() *rest.Config {
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	return &rest.Config{Host: g.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}, QPS: -1}
}

// Route sends each request made from now on to the server that choose names by
// its number, as a load balancer may do. What is open stays where it is.
func (g *Gateway) Route(choose func(url.Values) int, configs ...*rest.Config) error {
	var upstreams []*upstream
	for _, config := range configs {
		config = rest.CopyConfig(config)
		config.Dial = (&net.Dialer{}).DialContext // connections of its own
		transport, err := rest.TransportFor(config)
		if err != nil {
			return err
		}
		to, err := url.Parse(config.Host)
		if err != nil {
			return err
		}
		upstreams = append(upstreams, &upstream{url: to, transport: transport})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.upstreams = append(g.upstreams, upstreams...)
	g.route = func(query url.Values) *upstream { return upstreams[choose(query)] }
	return nil
}

// Edit changes the query of each request from now on.
func (g *Gateway) Edit(edit func(url.Values)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.edit = edit
}

// DropBookmarks takes all bookmarks out of the watches that are opened from now
// on, the end marker of a WatchList as well.
func (g *Gateway) DropBookmarks() {
	g.EditEvents(Each(func(event []byte) ([]byte, bool) {
		if bytes.HasPrefix(event, bookmark) {
			return nil, true
		}
		return event, true
	}))
}

// EventEditor edits one event of a watch, which is a line of JSON. What it returns
// is sent in its place; more is false to end the watch after it.
type EventEditor func(event []byte) (edited []byte, more bool)

// Each returns an editor that is the same for all watches, for [Gateway.EditEvents].
func Each(edit EventEditor) func() EventEditor { return func() EventEditor { return edit } }

// EditEvents has what comes on the watches that are opened from now on edited, each
// watch by an editor of its own, which begin returns. Nil leaves everything as it
// is.
func (g *Gateway) EditEvents(begin func() EventEditor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = begin
}

// Answer has requests answered in the server's place from now on. Where answer
// returns nil the server is asked; it may wait before it returns, for as long as
// the request's context lasts. Nil asks the server again about everything.
func (g *Gateway) Answer(answer func(*http.Request) *http.Response) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer = answer
}

// Stall holds back what open watches bring, from now on, and returns how many
// there are. They stay open, and so do the connections that they are on.
func (g *Gateway) Stall() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.streams {
		s.stallLocked()
	}
	return len(g.streams)
}

// StallNew says whether watches that are opened from now on bring nothing, beyond
// the answer that they are open.
func (g *Gateway) StallNew(stall bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stallNew = stall
}

// End ends all open watches, as their time limits do.
func (g *Gateway) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.streams {
		s.ended = true
		_ = s.from.Close()
	}
}

// Release lets open watches bring what was held back, and all that follows.
func (g *Gateway) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stallNew = false
	for s := range g.streams {
		if s.stalled != nil {
			close(s.stalled)
			s.stalled = nil
		}
	}
}

// Close ends all connections and the gateway. When it returns, no watch is open.
func (g *Gateway) Close() {
	g.server.CloseClientConnections()
	g.server.Close()
	g.open.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, u := range g.upstreams {
		utilnet.CloseIdleConnectionsFor(u.transport)
	}
}

// rewrite makes the request to the API server.
func (g *Gateway) rewrite(r *httputil.ProxyRequest) {
	g.mu.Lock()
	edit, events := g.edit, g.events
	g.mu.Unlock()
	query := r.Out.URL.Query()
	edit(query)
	r.Out.URL.RawQuery = query.Encode()
	if events != nil && query.Get("watch") != "" {
		r.Out.Header.Set("Accept", "application/json") // one event a line
		r.Out.Header.Del("Accept-Encoding")
	}
}

// RoundTrip implements http.RoundTripper: it sends a request to the server whose
// turn it is.
func (g *Gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	to, answer := g.route(r.URL.Query()), g.answer
	g.mu.Unlock()
	if answer != nil {
		if response := answer(r); response != nil {
			response.Request = r
			return response, nil
		}
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = to.url.Scheme, to.url.Host, to.url.Host
	return to.transport.RoundTrip(r)
}

// isJSON reports whether an answer is one that can be edited: also one that was
// asked for before there was anything to edit.
func isJSON(response *http.Response) bool {
	return strings.HasPrefix(response.Header.Get("Content-Type"), "application/json")
}

// modify puts a stream in place of what a watch brings.
func (g *Gateway) modify(response *http.Response) error {
	if response.Request.URL.Query().Get("watch") == "" || response.StatusCode != http.StatusOK {
		return nil
	}
	s := &stream{gateway: g, from: response.Body, gone: response.Request.Context().Done()}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.events != nil && isJSON(response) {
		s.from = &edited{lines: bufio.NewReader(response.Body), from: response.Body, edit: g.events()}
	}
	if g.stallNew {
		s.stallLocked()
	}
	g.streams[s] = true
	g.open.Add(1)
	response.Body = s
	return nil
}
