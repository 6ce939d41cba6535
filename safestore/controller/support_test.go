package controller_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

var secretsKind = wiretest.Kind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret"}

// bench is a server in memory, two stores of it, and the history of what a
// controller does. Time is virtual.
type bench struct {
	*wiretest.Server
	t        *testing.T
	maps     *wiretest.Collection
	secrets  *wiretest.Collection
	mapStore *safestore.Store[*corev1.ConfigMap]
	secStore *safestore.Store[*corev1.Secret]
	history  *history
	ctx      context.Context
	logged   *lines
	stops    []func(error)
}

// onBench runs a test in a bubble, where the stores are running and the server has
// the ConfigMaps a and b.
func onBench(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{Server: wiretest.New(t), t: t, history: newHistory(), logged: &lines{}}
		b.ctx = klog.NewContext(t.Context(), b.logged.logger())
		b.maps, b.secrets = b.Resource(wiretest.ConfigMaps), b.Resource(secretsKind)
		b.set("a", "1")
		b.set("b", "1")
		client := kubernetes.NewForConfigOrDie(b.Config()).CoreV1()
		var err error
		b.mapStore, err = safestore.New[*corev1.ConfigMap](b.mapStoreSource(), safestore.Options{})
		require.NoError(t, err)
		b.secStore, err = safestore.New[*corev1.Secret](watcher.ListWatch(client.Secrets("")), safestore.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer cancel()
		go b.mapStore.Run(ctx)
		go b.secStore.Run(ctx)
		synctest.Wait()
		test(t, b)
		for _, stop := range b.stops {
			stop(nil)
		}
		assert.Empty(t, b.history.faults())
	})
}

// set writes a ConfigMap.
func (b *bench) set(name, value string) {
	b.maps.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"key": value}})
}

// mapStoreSource is for more stores of ConfigMaps.
func (b *bench) mapStoreSource() watcher.Source {
	return watcher.ListWatch(kubernetes.NewForConfigOrDie(b.Config()).CoreV1().ConfigMaps(""))
}

// start runs a controller until stop is called, or to the end of the test, and
// checks that its end is a good one.
func (b *bench) start(c *controller.Controller) (stop func(cause error)) {
	ctx, cancel := context.WithCancelCause(b.ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = func(cause error) {
		cancel(cause)
		if err, first := <-done; first {
			assert.NoError(b.t, err)
			close(done)
		}
	}
	b.stops = append(b.stops, stop)
	synctest.Wait()
	return stop
}

// new makes a controller whose work is entered into the history.
func (b *bench) new(opts controller.Options, f func(context.Context, controller.Request) (controller.Result, error), sources ...controller.Source) *controller.Controller {
	b.t.Helper()
	if len(sources) == 0 {
		sources = []controller.Source{controller.For(b.mapStore)}
	}
	c, err := controller.New("test", b.entered(f), opts, sources...)
	require.NoError(b.t, err)
	return c
}

// entered is f, with its calls entered into the history.
func (b *bench) entered(f func(context.Context, controller.Request) (controller.Result, error)) func(context.Context, controller.Request) (controller.Result, error) {
	return func(ctx context.Context, req controller.Request) (controller.Result, error) {
		b.history.begins(ctx, req)
		how := "panics"
		defer func() { b.history.ends(req, how) }()
		result, err := f(ctx, req)
		switch {
		case ctx.Err() != nil:
			how = "was cut"
		case err != nil:
			how = "fails"
		default:
			how = "is done"
		}
		return result, err
	}
}

// does is work that does something and succeeds.
func (b *bench) does(ctx context.Context, req controller.Request) (controller.Result, error) {
	return controller.Result{}, b.history.acts(ctx, req)
}

// happened checks what has happened since it was called last, in any order if it is
// by several workers.
func (b *bench) happened(want ...string) {
	b.t.Helper()
	synctest.Wait()
	assert.Equal(b.t, want, b.history.take())
}

// revoke ends the token of the ConfigMaps' store, and enters that of the controller
// as over.
func (b *bench) revoke(c *controller.Controller) *token.Token {
	t := c.Readiness().Token()
	b.mapStore.Revoke(b.mapStore.Token(), errTest)
	b.history.ended(t.Generation())
	return t
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// forbidden is what kube-apiserver answers without the right.
func forbidden() *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no rule allows it"))
}

var errTest = errors.New("the test says so")

// lines are what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(l)))
}

// Write implements io.Writer, for one line at a time.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, text, _ := strings.Cut(string(line), "] ") // without time and place
	l.all = append(l.all, strings.TrimSuffix(text, "\n"))
	return len(line), nil
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}
