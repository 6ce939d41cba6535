package system

import (
	"net/http"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// counter counts the requests of a cache.
type counter struct {
	next     http.RoundTripper
	requests atomic.Int64
	sets     atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	is := func(name string) bool { return query.Get(name) == "true" || query.Get(name) == "1" }
	set := is("sendInitialEvents")
	if !is("watch") {
		set = query.Get("limit") != "1" && !query.Has("continue")
	}
	c.requests.Add(1)
	if set {
		c.sets.Add(1)
	}
	return c.next.RoundTrip(r)
}

// WrappedRoundTripper is how client-go finds the connections to close.
func (c *counter) WrappedRoundTripper() http.RoundTripper { return c.next }

// reconnect closes the connections that are idle.
func (c *counter) reconnect() { utilnet.CloseIdleConnectionsFor(c.next) }
