// Package prometheus exports the metrics of stores and groups to Prometheus. It is
// a module of its own, so that only programs that want it get Prometheus' client.
//
//	registry.MustRegister(safeprom.NewCollector(pods, nodes))
//
// The metrics are those of [safestore.Metrics], of names that begin with
// "safestore_", with the name of the store or group as a label. The collector
// asks for them when it is scraped and keeps nothing, so that a scrape shows what
// is so then, and costs nothing in between.
//
// # Concurrency
//
// A collector may be used from any goroutine. Collecting never waits, neither for a
// store nor for the server.
package prometheus
