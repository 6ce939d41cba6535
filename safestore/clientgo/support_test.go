package clientgo_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
	"github.com/kube-safestore/kube-safestore/watcher"
)

var podsKind = wiretest.Kind{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod"}

// wire is a store of Pods on a server in memory, and its view. Time is virtual.
type wire struct {
	*wiretest.Server
	t       *testing.T
	pods    *wiretest.Collection
	store   *safestore.Store[*corev1.Pod]
	indexer cache.Indexer
	giveUp  context.CancelCauseFunc // ends the context of the indexer
	stop    context.CancelCauseFunc // ends the store's
	log     *buffer
}

// onWire runs a test in a bubble, with a store that is not yet started.
func onWire(t *testing.T, opts safestore.Options, test func(*testing.T, *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{Server: wiretest.New(t), t: t, log: &buffer{}}
		w.pods = w.Resource(podsKind)
		var err error
		w.store, err = safestore.New(
			watcher.ListWatch(kubernetes.NewForConfigOrDie(w.Config()).CoreV1().Pods("")), opts,
			safestore.WithIndex("node", byNode), safestore.WithIndex("volume", byVolume))
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		w.indexer, w.giveUp = clientgo.Indexer(ctx, w.store), cancel
		t.Cleanup(func() { cancel(nil) })
		test(t, w)
	})
}

// run starts the store, which is stopped with the test.
func (w *wire) run() {
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w.log)))
	ctx, cancel := context.WithCancelCause(klog.NewContext(w.t.Context(), log))
	w.stop = cancel
	go w.store.Run(ctx)
	w.t.Cleanup(func() { cancel(nil) })
	synctest.Wait()
}

// refused starts the store and takes its rights away. The returned function gives
// them back, and returns when the store is ready again.
func (w *wire) refused() (grant func()) {
	w.t.Helper()
	w.run()
	_, err := w.store.WaitReady(w.t.Context())
	require.NoError(w.t, err)
	heal := w.Break(wiretest.All, wiretest.Answer(forbidden()))
	w.Cut()
	time.Sleep(250 * time.Millisecond) // the most that it takes to open a watch again
	synctest.Wait()
	return func() {
		heal()
		_, err := w.store.WaitReady(w.t.Context())
		require.NoError(w.t, err)
		synctest.Wait()
	}
}

// pod has an index value for its node, and one for each volume.
func pod(namespace, name, node string, volumes ...string) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	for _, volume := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: volume})
	}
	return p
}

func byNode(p *corev1.Pod) []string {
	if p.Spec.NodeName == "" {
		return nil
	}
	return []string{p.Spec.NodeName}
}

func byVolume(p *corev1.Pod) []string {
	var names []string
	for _, volume := range p.Spec.Volumes {
		names = append(names, volume.Name)
	}
	return names
}

// forbidden is what kube-apiserver answers without the right.
func forbidden() *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "",
		errors.New(`User "app" cannot list resource "pods" in API group ""`))
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// buffer is what was logged.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
