// Package gateway is an HTTP/2 proxy on localhost, as a load balancer or a service
// mesh puts one between a client and an API server, and does what those do to
// watches. Connections to it stay whole, and it answers their pings by itself:
// what is wrong with a stream does not show on the connection that it is on.
//
// It ends TLS, and speaks to the API server with credentials of its own. Clients
// need none.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package gateway
