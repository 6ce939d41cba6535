package wiretest

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Server is an API server in memory. Make one with [New].
type Server struct {
	network *network

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, by every update
	truth    truth
	kinds    map[schema.GroupVersionResource]Kind
	breaks   []*breakage
	requests []*Request
	streams  []*stream // open ones
}

// New starts a server that ends with the test. It must be called in the bubble
// of the test.
func New(t testing.TB) *Server {
	s := &Server{
		network: newNetwork(),
		changed: make(chan struct{}),
		kinds:   map[schema.GroupVersionResource]Kind{},
	}
	s.truth.version = 1000 // so that versions of all lengths in digits are rare, and "0" is not near
	s.truth.objects = map[objectKey]object{}
	server := &http.Server{Handler: http.HandlerFunc(s.serve), ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(s.network)
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return s
}

// Config returns what a client needs to reach the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host:  "http://wiretest",
		QPS:   -1, // no limit
		Dial:  s.network.dial,
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, // also keeps client-go from caching the transport
	}
}

// Resource makes the server serve a resource, which has no objects at first.
func (s *Server) Resource(kind Kind) *Collection {
	s.update(func() { s.kinds[kind.GroupVersionResource] = kind })
	return &Collection{server: s, kind: kind}
}

// Remove makes the server not know the resource any more, as when its
// CustomResourceDefinition is deleted: its objects are deleted and its watches
// end. [Server.Resource] brings it back, empty.
func (s *Server) Remove(kind Kind) {
	s.update(func() {
		delete(s.kinds, kind.GroupVersionResource)
		for _, item := range s.truth.list(kind.GroupVersionResource, "") {
			s.truth.delete(item.objectKey)
		}
		for _, st := range s.streams {
			if st.exchange.kind == kind {
				st.ended = true
			}
		}
	})
}

// update changes anything and lets the open watches look at it.
func (s *Server) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Request is one that reached the server.
type Request struct {
	At       time.Time
	Verb     string // "list" or "watch"
	Resource schema.GroupVersionResource
	Options  metav1.ListOptions
	Ended    time.Time // when it was answered or broken off, zero while it is open
	Dropped  bool      // it ended because the client went away, or the connection was cut
}

// Initial reports whether the request is for a WatchList.
func (r Request) Initial() bool {
	return r.Verb == "watch" && r.Options.SendInitialEvents != nil && *r.Options.SendInitialEvents
}

// Requests returns the requests so far that which selects, oldest first.
func (s *Server) Requests(which Which) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Request
	for _, r := range s.requests {
		if which(*r) {
			all = append(all, *r)
		}
	}
	return all
}

// Open returns the number of requests that are being answered, open watches among
// them.
func (s *Server) Open() int {
	return len(s.Requests(func(r Request) bool { return r.Ended.IsZero() }))
}

// Streams returns the number of open watches.
func (s *Server) Streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// exchange is a request and how it is to be answered.
type exchange struct {
	*Request
	server    *Server
	ctx       context.Context
	w         http.ResponseWriter
	kind      Kind
	namespace string

	// What faults have to say.
	healed     <-chan struct{} // of the fault that is being applied
	delays     []func()        // first of all
	instead    func()          // of the server's own answer
	past       int64           // the version at which the truth is served, zero for now
	editList   []func(*List)   // before it is sent
	editEvents []func(*Event)  // before they are sent
	editPlan   []func(*plan)   // of a watch
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Request: &Request{At: time.Now(), Verb: "list"}, server: s, ctx: r.Context(), w: w}
	query := r.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &x.Options, nil); err != nil {
		x.fail(apierrors.NewBadRequest(err.Error()))
		return
	}
	if x.Options.Watch {
		x.Verb = "watch"
	}
	if x.Resource, x.namespace = parsePath(r.URL.Path); r.Method != http.MethodGet || x.Resource.Resource == "" ||
		x.Options.LabelSelector != "" || x.Options.FieldSelector != "" {
		x.fail(apierrors.NewBadRequest("wiretest does not know " + r.Method + " " + r.URL.String()))
		return
	}
	served := false
	s.update(func() {
		s.requests = append(s.requests, x.Request)
		x.kind, served = s.kinds[x.Resource]
		s.breaks = slices.DeleteFunc(s.breaks, func(b *breakage) bool { return b.isHealed() })
		for _, b := range s.breaks {
			if b.which(*x.Request) {
				x.healed = b.healed
				b.fault(x)
			}
		}
	})
	defer s.update(func() {})
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		x.Ended, x.Dropped = time.Now(), x.Dropped || x.ctx.Err() != nil
	}()
	for _, delay := range x.delays {
		delay()
	}
	switch {
	case x.ctx.Err() != nil:
	case x.instead != nil:
		x.instead()
	case !served:
		x.fail(apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true))
	case x.Options.Watch:
		x.watch()
	default:
		x.list()
	}
}

// parsePath finds the resource in the path of its collection.
func parsePath(path string) (resource schema.GroupVersionResource, namespace string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		resource.Group, resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return resource, ""
	}
	if len(parts) == 3 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 1 {
		resource.Resource = parts[0]
	}
	return resource, namespace
}
