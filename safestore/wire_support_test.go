package safestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// The tests in wire_*_test.go are about a store and an API server that misbehaves
// on the wire. Time is virtual: what is said to take ten seconds takes exactly
// ten seconds, and no real time.

// wire is a store of ConfigMaps, the server that it lists and watches, and what
// its hooks heard.
type wire struct {
	*wiretest.Server
	t     *testing.T
	maps  *wiretest.Collection
	store *safestore.Store[*corev1.ConfigMap]
	began time.Time
	stop  context.CancelCauseFunc
	done  chan error

	mu    sync.Mutex
	heard []string
}

// aMoment is how long a watch that was cut may take to be opened again: that is spread, so
// that many replicas do not come at once.
const aMoment = 250 * time.Millisecond

// onWire runs a test in a bubble, with a store that is not yet started.
func onWire(t *testing.T, opts safestore.Options, test func(*testing.T, *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{Server: wiretest.New(t), t: t, began: time.Now()}
		w.maps = w.Resource(wiretest.ConfigMaps)
		var err error
		w.store, err = safestore.New[*corev1.ConfigMap](w.source(), opts)
		require.NoError(t, err)
		w.store.OnReady(func(tok *token.Token) { w.hear("ready %d", tok.Generation()) })
		w.store.OnRevoke(func(r *invalidation.Revocation) { w.hear("revoked %d %s", r.Generation, string(r.Reason)) })
		test(t, w)
	})
}

// restart replaces the store, not yet started, by one with other options.
func (w *wire) restart(opts safestore.Options) {
	w.t.Helper()
	var err error
	w.store, err = safestore.New[*corev1.ConfigMap](w.source(), opts)
	require.NoError(w.t, err)
}

func (w *wire) source() watcher.Source {
	return watcher.ListWatch(kubernetes.NewForConfigOrDie(w.Config()).CoreV1().ConfigMaps(""))
}

func (w *wire) hear(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, fmt.Sprintf(format, args...))
}

// hooks returns what the hooks have heard when everything is quiet.
func (w *wire) hooks() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heard)
}

// run starts the store, which is stopped with the test.
func (w *wire) run() {
	ctx, cancel := context.WithCancelCause(klog.NewContext(w.t.Context(), klog.Logger{}))
	w.stop, w.done = cancel, make(chan error, 1)
	go func() { w.done <- w.store.Run(ctx) }()
	w.t.Cleanup(func() { w.stop(nil) })
	synctest.Wait()
}

// ready starts the store and waits until it is ready, which takes no time.
func (w *wire) ready() *token.Token {
	w.t.Helper()
	w.run()
	return w.readyAfter(0, 0)
}

// readyAfter waits until the store is ready, and says between which two lengths
// of time that may take from now on.
func (w *wire) readyAfter(least, most time.Duration) *token.Token {
	w.t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(w.t.Context(), most+time.Nanosecond)
	defer cancel()
	tok, err := w.store.WaitReady(ctx)
	require.NoError(w.t, err, "ready within %v", most)
	took := time.Since(start)
	require.GreaterOrEqual(w.t, took, least, "how long it took to be ready")
	require.LessOrEqual(w.t, took, most, "how long it took to be ready")
	synctest.Wait()
	return tok
}

// ended waits for the end of a token, for no longer than that.
func (w *wire) ended(tok *token.Token, within time.Duration) {
	w.t.Helper()
	select {
	case <-tok.Context().Done():
	case <-time.After(within):
		require.Fail(w.t, "not revoked", "within %v", within)
	}
}

// notReady returns why the store is not ready, as all reads have to say alike.
func (w *wire) notReady() *safestore.NotReadyError {
	w.t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel()
	_, err1 := w.store.Snapshot()
	object, err2 := w.store.Get(ctx, named("a"))
	list, err3 := w.store.List(ctx)
	tok, err4 := w.store.WaitReady(ctx)
	for _, err := range []error{err1, err2, err3, err4} {
		require.ErrorIs(w.t, err, safestore.ErrNotReady)
		require.False(w.t, apierrors.IsNotFound(err), "a store that is not ready says nothing about objects")
	}
	require.Nil(w.t, object)
	require.Nil(w.t, list)
	require.Nil(w.t, tok)
	var e *safestore.NotReadyError
	require.ErrorAs(w.t, err1, &e)
	return e
}

// same says that the store is ready and shows exactly what the server has.
func (w *wire) same() {
	w.t.Helper()
	synctest.Wait()
	snapshot, err := w.store.Snapshot()
	require.NoError(w.t, err)
	require.Equal(w.t, w.truth(), shown(snapshot))
}

// truth is what the server has, in one line for each object: its name, version
// and value.
func (w *wire) truth() []string {
	var lines []string
	for _, raw := range w.maps.Objects() {
		var m corev1.ConfigMap
		require.NoError(w.t, json.Unmarshal(raw, &m))
		lines = append(lines, line(&m))
	}
	slices.Sort(lines)
	return lines
}

// shown is what a snapshot has, in the same way.
func shown(snapshot *safestore.Snapshot[*corev1.ConfigMap]) []string {
	var lines []string
	for _, m := range snapshot.All() {
		lines = append(lines, line(m))
	}
	slices.Sort(lines)
	return lines
}

func line(m *corev1.ConfigMap) string {
	return fmt.Sprintf("%s@%s %s=%s", m.Name, m.ResourceVersion, m.UID, m.Data["key"])
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// count returns how many requests of a kind the server has seen.
func (w *wire) count(which wiretest.Which) int {
	synctest.Wait()
	return len(w.Requests(which))
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// forbidden is what kube-apiserver answers without the right.
func forbidden() *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
		errors.New(`User "app" cannot list resource "configmaps" in API group ""`))
}

func failure(message string) *apierrors.StatusError {
	return apierrors.NewInternalError(errors.New(message))
}

func statusCode(t *testing.T, err error) int32 {
	t.Helper()
	var status apierrors.APIStatus
	require.True(t, errors.As(err, &status), "no API status in: %v", err)
	return status.Status().Code
}

// watchOptions are the options of a store that differ in those of its watcher.
func watchOptions(o watcher.Options) safestore.Options { return safestore.Options{Watch: o} }

// replace puts another object in the place of that of an event.
func replace(obj any) func(*wiretest.Event) {
	raw, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return func(e *wiretest.Event) {
		if e.Type != watch.Bookmark {
			e.Object = raw
		}
	}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "1002"},
	}
}

func unknownKind() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Unknown"}}
}

func tooMany(retryAfter int) *apierrors.StatusError {
	return apierrors.NewTooManyRequests("slow down", retryAfter)
}
