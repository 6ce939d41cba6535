package subject

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// ConfigMaps is the resource of [Typed] subjects.
var ConfigMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Options say how a subject is made. The zero value works.
type Options struct {
	// Store are the store's options.
	Store safestore.Options
	// Namespace to list and watch; all if empty.
	Namespace string
	// Paged makes the source say that it cannot be asked for a WatchList.
	Paged bool
	// Modify is applied to the options of every request.
	Modify []func(*metav1.ListOptions)
}

// Subject is a store under test.
type Subject struct {
	Store
	Name      string // the kind of client
	Namespace string
	Requests  *requests.Log
	Gate      *requests.Gate

	runs        chan error // what Run returned
	end         context.CancelCauseFunc
	connections connections
}

// Typed returns a store of ConfigMaps over a typed client.
func Typed(t testing.TB, config *rest.Config, o Options) *Subject {
	s, httpClient := prepare(t, "typed", config, o)
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	source := watcher.ListWatch(client.CoreV1().ConfigMaps(o.Namespace), o.Modify...)
	s.Store = newStore[*corev1.ConfigMap](t, source, o)
	return s
}

// Dynamic returns a store over a dynamic client.
func Dynamic(t testing.TB, config *rest.Config, gvr schema.GroupVersionResource, o Options) *Subject {
	s, httpClient := prepare(t, "dynamic", config, o)
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	source := watcher.ListWatch(client.Resource(gvr).Namespace(o.Namespace), o.Modify...)
	s.Store = newStore[*unstructured.Unstructured](t, source, o)
	return s
}

// Metadata returns a store over a metadata client.
func Metadata(t testing.TB, config *rest.Config, gvr schema.GroupVersionResource, o Options) *Subject {
	s, httpClient := prepare(t, "metadata", config, o)
	client, err := metadata.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	source := watcher.ListWatch(client.Resource(gvr).Namespace(o.Namespace), o.Modify...)
	s.Store = newStore[*metav1.PartialObjectMetadata](t, source, o)
	return s
}

// All returns stores of ConfigMaps over each kind of client.
func All(t testing.TB, config *rest.Config, o Options) []*Subject {
	return []*Subject{Typed(t, config, o), Dynamic(t, config, ConfigMaps, o), Metadata(t, config, ConfigMaps, o)}
}

// Start runs the store until the test ends or Stop is called, and checks that
// it then ends as it should.
func (s *Subject) Start(t testing.TB) *Subject {
	t.Helper()
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(t.Output())))
	ctx, cancel := context.WithCancelCause(klog.NewContext(context.Background(), logger.WithValues("client", s.Name)))
	s.end, s.runs = cancel, make(chan error, 1)
	go func() { s.runs <- s.Run(ctx) }()
	t.Cleanup(func() { s.Stop(t, nil) })
	return s
}

// Stop ends the store's context with a cause, and returns when the store has
// ended. A second call does nothing.
func (s *Subject) Stop(t testing.TB, cause error) {
	t.Helper()
	if s.end == nil {
		return
	}
	s.end(cause)
	s.end = nil
	begun := time.Now()
	select {
	case err := <-s.runs:
		assert.NoError(t, err, "%s: Run", s.Name)
		assert.Less(t, time.Since(begun), 2*time.Second, "%s: Run took long to end", s.Name)
	case <-time.After(patience):
		t.Errorf("%s: Run does not end", s.Name)
	}
}

// CloseConnections closes the client's connections, as the end of the test does.
func (s *Subject) CloseConnections() { s.connections.close() }

// prepare makes the client's connections: the subject's own, which end with the
// test, so that what happens to them concerns no other store.
func prepare(t testing.TB, name string, config *rest.Config, o Options) (*Subject, *http.Client) {
	t.Helper()
	s := &Subject{Name: name, Namespace: o.Namespace, Requests: &requests.Log{}, Gate: &requests.Gate{}}
	if o.Paged {
		s.Name += ", paged"
	}
	config = rest.CopyConfig(config)
	config.Dial = s.connections.dial // a dialer of its own keeps client-go from sharing connections
	config.Wrap(s.Gate.Wrap)
	config.Wrap(s.Requests.Wrap)
	httpClient, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.CloseConnections()
		for _, r := range s.Requests.All() {
			assert.True(t, r.Over, "%s: a request is left open: %s", s.Name, r)
		}
	})
	return s, httpClient
}

func newStore[T safestore.Object](t testing.TB, source watcher.Source, o Options) Store {
	t.Helper()
	if o.Paged {
		source = pagedSource{source}
	}
	store, err := safestore.New[T](source, o.Store)
	require.NoError(t, err)
	return anyStore[T]{store}
}

// pagedSource says that it knows no WatchList, as client-go's fakes do.
type pagedSource struct{ watcher.Source }

func (pagedSource) IsWatchListSemanticsUnSupported() bool { return true }
