package system

import (
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// Kind is one of the caches under test.
type Kind string

// The caches under test.
const (
	SafeStore Kind = "SafeStore"
	Informer  Kind = "client-go"
	Runtime   Kind = "controller-runtime"
)

// Kinds are all of them, SafeStore first.
var Kinds = []Kind{SafeStore, Informer, Runtime}

// Settings says how a cache is set up, for people.
func (k Kind) Settings() string {
	switch k {
	case SafeStore:
		return "safestore.Options{MaxStaleness: bound}, Watch.Reconnect closes idle connections; a read is Snapshot"
	case Informer:
		return "NewSharedIndexInformerWithOptions, WatchList on (default); a read is the indexer's List, good if HasSynced"
	default:
		return "cache.Options{ReaderFailOnMissingInformer: true}, informer got at the start; a read is List, good if HasSynced and without error"
	}
}

// Setup is what a process is told.
type Setup struct {
	Kind Kind

	// How the server is reached.
	Host          string
	CA, Cert, Key []byte
	TokenFile     string // a bearer token, read again by client-go; empty for none

	// Resource and Namespace are what is cached: ConfigMaps by a typed client,
	// anything else by a dynamic one. ObjectKind is the kind of the objects.
	Resource   schema.GroupVersionResource
	ObjectKind string
	Namespace  string

	// Bound is SafeStore's MaxStaleness, MaxBackoff its longest pause between
	// attempts; zero for the default.
	Bound, MaxBackoff time.Duration

	// Interval is the time between two reads.
	Interval time.Duration
}

// Access takes over how a server is reached.
func (s *Setup) Access(config *rest.Config) {
	s.Host, s.CA, s.Cert, s.Key, s.TokenFile = config.Host, config.CAData, config.CertData, config.KeyData, config.BearerTokenFile
}

// typed reports whether the objects are ConfigMaps.
func (s *Setup) typed() bool { return s.Resource == subject.ConfigMaps }

// config returns the access to the server, without client-side rate limit, and
// counting what is asked.
func (s *Setup) config(c *counter) *rest.Config {
	config := &rest.Config{
		Host:            s.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CA, CertData: s.Cert, KeyData: s.Key},
		BearerTokenFile: s.TokenFile,
		QPS:             -1,
		Dial:            (&net.Dialer{}).DialContext, // keeps client-go from sharing connections
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c.next = next
		return c
	})
	return config
}
