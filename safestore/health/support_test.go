package health_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

var (
	pods  = wiretest.Kind{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod"}
	nodes = wiretest.Kind{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node"}
)

// wire is two stores on a server in memory, not yet started. Time is virtual.
type wire struct {
	*wiretest.Server
	t     *testing.T
	pods  *safestore.Store[*corev1.Pod]
	nodes *safestore.Store[*corev1.Node]
	stop  context.CancelFunc // ends those that run
}

// onWire runs a test in a bubble.
func onWire(t *testing.T, opts safestore.Options, test func(*testing.T, *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{Server: wiretest.New(t), t: t}
		w.Resource(pods)
		w.Resource(nodes)
		client := kubernetes.NewForConfigOrDie(w.Config()).CoreV1()
		var err error
		opts.Name = "pods"
		w.pods, err = safestore.New[*corev1.Pod](watcher.ListWatch(client.Pods("")), opts)
		require.NoError(t, err)
		opts.Name = "nodes"
		w.nodes, err = safestore.New[*corev1.Node](watcher.ListWatch(client.Nodes()), opts)
		require.NoError(t, err)
		test(t, w)
	})
}

// run starts the stores, which are stopped with the test.
func (w *wire) run() {
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{}))
	w.stop = cancel
	w.t.Cleanup(cancel)
	go w.pods.Run(ctx)
	go w.nodes.Run(ctx)
	synctest.Wait()
}

// aMoment is how long a watch that was cut may take to be opened again.
const aMoment = 250 * time.Millisecond

// refuse takes the right to one resource away, until the returned function is
// called.
func (w *wire) refuse(kind wiretest.Kind) (heal func()) {
	heal = w.Break(wiretest.Of(kind, wiretest.All), wiretest.Answer(forbidden(kind)))
	w.Cut()
	after(aMoment)
	after(time.Second)
	return heal
}

// forbidden is what kube-apiserver answers without the right.
func forbidden(kind wiretest.Kind) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind.Resource}, "",
		errors.New(`User "app" cannot list resource "`+kind.Resource+"\"\nin API group \"\""))
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// get asks a handler, as a kubelet does. The handler must answer at once.
func get(t *testing.T, h http.Handler, url string) (code int, body string) {
	t.Helper()
	begun := time.Now()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	assert.Zero(t, time.Since(begun), "it does not wait")
	if code := w.Code; code != http.StatusNotFound {
		assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
	return w.Code, w.Body.String()
}

func assertGet(t *testing.T, h http.Handler, url string, code int, body string) {
	t.Helper()
	gotCode, gotBody := get(t, h, url)
	assert.Equal(t, code, gotCode, url)
	assert.Equal(t, body, gotBody, url)
}

// groupOf returns a group, closed with the test.
func groupOf(t *testing.T, name string, members ...safestore.Readiness) *safestore.Group {
	t.Helper()
	g, err := safestore.NewGroup(name, members...)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}
