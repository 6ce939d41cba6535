package e2e

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/cluster"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// patience bounds what a test waits for besides a store.
const patience = 60 * time.Second

// fast are options that keep the waits of a test short. The delays keep their
// proportions to the defaults.
func fast() safestore.Options {
	return safestore.Options{Watch: watcher.Options{MinBackoff: 50 * time.Millisecond, MaxBackoff: time.Second}}
}

// env is a cluster, and the administrator's clients to it.
type env struct {
	*cluster.Cluster
	admin    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

// shared is the cluster that no test may break.
type shared struct {
	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

var sharedCluster shared

func (s *shared) start() (*cluster.Cluster, error) {
	s.once.Do(func() {
		// It outlives the test that needs it first.
		s.cluster, s.err = cluster.Start(context.Background(), cluster.Options{Progress: os.Stderr})
	})
	return s.cluster, s.err
}

func (s *shared) stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

// share returns the cluster that is shared by the tests that do not break it.
func share(t *testing.T) *env {
	t.Helper()
	c, err := sharedCluster.start()
	require.NoError(t, err)
	return connect(t, c, c.Config())
}

// own returns a cluster for this test alone.
func own(t *testing.T) *env {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	return connect(t, c, c.Config())
}

// connect returns a cluster and clients to one of its API servers.
func connect(t *testing.T, c *cluster.Cluster, config *rest.Config) *env {
	t.Helper()
	config.Dial = (&net.Dialer{}).DialContext // connections of this test's own
	httpClient, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) })
	e := &env{Cluster: c}
	e.admin, err = kubernetes.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	e.dynamic, err = dynamic.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	e.metadata, err = metadata.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	return e
}

// namespace makes a namespace named after the test. Nothing is in it.
func (e *env) namespace(t *testing.T) string {
	t.Helper()
	ns, err := e.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return ns.Name
}

// contents returns what the server holds, by a consistent list.
func (e *env) contents(t *testing.T, gvr schema.GroupVersionResource, namespace string) subject.Contents {
	t.Helper()
	list, err := e.metadata.Resource(gvr).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	contents := subject.Contents{}
	for i := range list.Items {
		contents.Add(&list.Items[i])
	}
	return contents
}

// configMaps is contents for ConfigMaps.
func (e *env) configMaps(t *testing.T, namespace string) subject.Contents {
	t.Helper()
	return e.contents(t, subject.ConfigMaps, namespace)
}

// restart ends an API server in good order, as far as clients can see: watches
// are ended, and the listener is closed. What is left of the process then, which
// can be a wait for clients that are connected without asking anything, is
// killed, and the server is started again.
func restart(t *testing.T, a *cluster.APIServer) {
	t.Helper()
	require.NoError(t, a.Signal(syscall.SIGTERM))
	to := address(t, a)
	eventually(t, "the server does not listen any more", func() bool {
		conn, err := net.Dial("tcp", to)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	require.NoError(t, a.Kill())
	require.NoError(t, a.Start(t.Context()))
}

// throughProxy starts a proxy to an API server, and returns it with the
// administrator's access through it.
func throughProxy(t *testing.T, a *cluster.APIServer) (*proxy.Proxy, *rest.Config) {
	t.Helper()
	p, err := proxy.Start(address(t, a))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	config := a.Config()
	config.Host = "https://" + p.Address()
	return p, config
}

// address returns the address that an API server listens at.
func address(t *testing.T, a *cluster.APIServer) string {
	t.Helper()
	if !strings.Contains(a.URL(), "://") {
		return a.URL()
	}
	u, err := url.Parse(a.URL())
	require.NoError(t, err)
	return u.Host
}

// eventually waits for a state.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, what)
}
