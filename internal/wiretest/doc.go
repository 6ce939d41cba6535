// Package wiretest is an API server for tests that speaks the list and watch
// protocol on the wire, to real client-go clients, and misbehaves on demand. It
// is imported by tests only.
//
// Everything runs in memory and in the bubble of the test, package
// testing/synctest: hours of protocol take milliseconds, a test asserts exact
// times, and nothing sleeps.
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := wiretest.New(t)
//		maps := srv.Resource(wiretest.ConfigMaps)
//		maps.Set(configMap)
//		client := kubernetes.NewForConfigOrDie(srv.Config())
//		...
//		heal := srv.Break(wiretest.Watches, wiretest.Answer(apierrors.NewUnauthorized("who?")))
//		...
//		heal()
//	})
//
// A [Server] without faults is a healthy kube-apiserver 1.37 with regard to LIST
// and WATCH. What it serves is the truth, a versioned history of objects that
// tests change through [Collection] and that is kept apart from how it is served.
//
// Faults come in two kinds. Those that befall a request when it arrives are
// values of type [Fault], switched on for some requests by [Server.Break] and off
// by the function that it returns. Those that befall what is open already are
// methods of Server: Cut, Stall, Send and others.
//
// # Concurrency
//
// All methods may be called from any goroutine of the bubble.
package wiretest
