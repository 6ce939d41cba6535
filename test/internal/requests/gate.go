package requests

import (
	"context"
	"net/http"
	"sync"
)

// Gate holds requests back, in front of the transport. The zero value lets
// everything pass.
type Gate struct {
	mu    sync.Mutex
	holds func(Request) bool
	open  chan struct{}
}

// Hold makes the requests that match wait, from now on, until their context
// ends or the returned function is called. Only the last Hold counts.
func (g *Gate) Hold(match func(Request) bool) (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make(chan struct{})
	g.holds, g.open = match, open
	return sync.OnceFunc(func() { close(open) })
}

// Wrap is for rest.Config.Wrap, before that of a [Log] that is to see requests
// that are held.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, handle: func(r *http.Request) (*http.Response, error) {
		if err := g.pass(r); err != nil {
			return nil, err
		}
		return next.RoundTrip(r)
	}}
}

func (g *Gate) pass(r *http.Request) error {
	g.mu.Lock()
	holds, open := g.holds, g.open
	g.mu.Unlock()
	query := r.URL.Query()
	if holds == nil || !holds(Request{Kind: kindOf(r, query), Path: r.URL.Path, Query: query}) {
		return nil
	}
	select {
	case <-open:
		return nil
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
}
