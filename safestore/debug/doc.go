// Package debug shows people what stores are doing: a page with the state of each,
// and a timeline of its generations with the reasons for which they ended.
//
//	mux.Handle("/debug/safestore", debug.Handler(pods, nodes))
//
// The page is plain HTML without scripts, in one answer: it works behind a
// port-forward, on a phone, and when everything else is down. It is made from
// [safestore.Readiness].Status, so that it waits for nothing and asks no server.
//
// # Who may read it
//
// It holds no objects. It does show names, resource versions and the texts of API
// errors, which name users, namespaces and hosts, and keys where one object was the
// trouble. Serve it like net/http/pprof: not where strangers can reach it.
//
// # Concurrency
//
// A [Handler] may be used from any goroutine, and starts none.
package debug
