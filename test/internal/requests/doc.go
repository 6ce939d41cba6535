// Package requests sees what a store asks of an API server.
//
// A [Log] is put into a rest.Config and takes down every LIST and WATCH: when,
// with which query, how it was answered, and whether the server said that the
// version is gone, be it as the status or in the stream. A [Gate] in the same
// place holds requests back until the test lets them go. Both see requests as
// the transport does, with client-go's own retries.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package requests
