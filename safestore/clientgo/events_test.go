package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// recorder is a handler as they are written for informers.
type recorder struct{ calls []string }

func (r *recorder) call(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	m := obj.(*corev1.ConfigMap)
	r.call("add %s %s, initial: %t", m.Name, m.Data["key"], isInInitialList)
}

func (r *recorder) OnUpdate(old, new any) {
	before, m := old.(*corev1.ConfigMap), new.(*corev1.ConfigMap)
	r.call("update %s %s to %s", m.Name, before.Data["key"], m.Data["key"])
}

func (r *recorder) OnDelete(obj any) {
	if _, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		r.call("a tombstone")
		return
	}
	m := obj.(*corev1.ConfigMap)
	r.call("delete %s %s", m.Name, m.Data["key"])
}

func settings(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string]string{"key": value},
	}
}

// A handler that was written for informers hears what it would from one, but for
// tombstones (C39), replacements (C40) and what has not changed (C36).
func TestEventHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := wiretest.New(t)
		maps := server.Resource(wiretest.ConfigMaps)
		for _, name := range []string{"a", "b", "c", "d"} {
			maps.Set(settings(name, "1"))
		}
		source := watcher.ListWatch(kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps(""))
		store, err := safestore.New[*corev1.ConfigMap](source, safestore.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		r, handled := &recorder{}, make(chan error)
		sub := store.Subscribe("recorder")
		go store.Run(ctx)
		go func() { handled <- sub.Handle(ctx, clientgo.EventHandler[*corev1.ConfigMap](r)) }()
		_, err = sub.WaitCaughtUp(ctx)
		require.NoError(t, err)

		next := func() []string {
			synctest.Wait()
			calls := r.calls
			r.calls = nil
			slices.Sort(calls)
			return calls
		}
		assert.Equal(t, []string{"add a 1, initial: true", "add b 1, initial: true",
			"add c 1, initial: true", "add d 1, initial: true"}, next())
		maps.Set(settings("a", "2"))
		maps.Set(settings("e", "1"))
		maps.Delete("default", "d")
		assert.Equal(t, []string{"add e 1, initial: false", "delete d 1", "update a 1 to 2"}, next())

		server.Down()
		synctest.Wait()
		maps.Delete("default", "b")
		maps.Delete("default", "c")
		maps.Set(settings("c", "another"))
		maps.Set(settings("f", "1"))
		server.Compact()
		server.Up()
		synctest.Wait()
		assert.Empty(t, next(), "while nobody knows")
		_, err = store.WaitReady(ctx)
		require.NoError(t, err)
		for store.Token().Generation() == 1 { // it is still ready, and does not know yet
			<-store.Token().Context().Done()
			_, err = sub.WaitCaughtUp(ctx)
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"add c another, initial: false", "add f 1, initial: false", "delete b 1", "delete c 1"}, next())

		cancel()
		assert.NoError(t, <-handled)
	})
}

func TestEventHandlerOfNothing(t *testing.T) {
	assert.Panics(t, func() { clientgo.EventHandler[*corev1.ConfigMap](nil) })
}

// A handler that was written for informers runs on a store.
func ExampleEventHandler() {
	client := fake.NewClientset(settings("limits", "10"))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	maps, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(client.CoreV1().ConfigMaps("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go maps.Run(ctx)

	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { fmt.Println("added", obj.(*corev1.ConfigMap).Name) },
	}
	sub := maps.Subscribe("limits")
	ended := make(chan error)
	go func() { ended <- sub.Handle(ctx, clientgo.EventHandler[*corev1.ConfigMap](handler)) }()

	token, err := sub.WaitCaughtUp(ctx) // in place of cache.WaitForCacheSync
	fmt.Println("caught up with generation", token.Generation(), err)

	maps.Revoke(token, errors.New("the program knows better"))
	fmt.Println("still caught up with it:", sub.CaughtUp() == token)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// added limits
	// caught up with generation 1 <nil>
	// still caught up with it: false
	// <nil>
}
