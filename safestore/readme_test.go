//lint:file-ignore SA4006 the README shows two reads below each other
package safestore_test

import (
	"context"
	"errors"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/safestore/debug"
	"github.com/kube-safestore/kube-safestore/safestore/health"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// The code of README.md, so that it compiles. A house rule keeps both alike.

func readmeUse(ctx context.Context, client kubernetes.Interface, key types.NamespacedName) error {
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{
		MaxStaleness: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	go pods.Run(ctx)

	pod, err := pods.Get(ctx, key)   // waits until the store is ready, ctx ends or the store closes
	snapshot, err := pods.Snapshot() // does not wait: a consistent view, or ErrNotReady saying why

	_, _ = pod, snapshot
	return err
}

func readmeErrors(ctx context.Context, pods *safestore.Store[*corev1.Pod], key types.NamespacedName) error {
	use, cleanUp := func(*corev1.Pod) {}, func(types.NamespacedName) {}

	pod, err := pods.Get(ctx, key)
	switch {
	case err == nil:
		use(pod)
	case apierrors.IsNotFound(err): // it does not exist
		cleanUp(key)
	case errors.Is(err, invalidation.Forbidden): // the right is missing: the API status is in err
		return err
	case errors.Is(err, safestore.ErrNotReady): // generation, reason, since when, last server error
		return err
	}

	return nil
}

func readmeToken(ctx context.Context, pods *safestore.Store[*corev1.Pod], reconcileAll func(context.Context) error) error {
	var tok *token.Token // none yet
	for {
		var err error
		if tok, err = pods.WaitNext(ctx, tok); err != nil {
			return err // ctx ended, or the store is closed
		}
		work, cancel := tok.Tie(ctx) // ends with the token, and with ctx; so do reads under it
		err = reconcileAll(work)
		cut := work.Err() != nil
		cancel()
		if err != nil && !cut {
			return err // its own; else it begins again under the next token
		}
	}
}

func readmeChanges(ctx context.Context, pods *safestore.Store[*corev1.Pod], publish, withdraw func(*corev1.Pod)) error {
	for change, err := range pods.Subscribe("dns").Changes(ctx) {
		if err != nil {
			return err // ctx ended, or the store is closed
		}
		switch change.Type {
		case safestore.Added, safestore.Updated:
			publish(change.New)
		case safestore.Deleted:
			withdraw(change.Old)
		case safestore.InitDone: // all there is has been published: begin to answer
		case safestore.Revoked: // it may be out of date from here on, until the next InitDone
		}
	}
	return nil
}

func readmeController(
	ctx context.Context, deployments *safestore.Store[*appsv1.Deployment], pods *safestore.Store[*corev1.Pod],
	reconcile func(context.Context, controller.Request) (controller.Result, error),
) error {
	c, err := controller.New("replicas", reconcile, controller.Options{Workers: 4},
		controller.For(deployments), controller.Reads(pods))
	if err != nil {
		return err
	}
	return c.Run(ctx) // the context of a leadership, for example
}

func readmeHealth(mux *http.ServeMux, pods, nodes safestore.Readiness) {
	ready := health.Ready(20*time.Second, pods, nodes) // with a grace, for when all replicas are in trouble at once
	mux.Handle("/readyz", ready)
	mux.Handle("/readyz/{check...}", ready)
	mux.Handle("/livez", health.Live(15*time.Minute, pods, nodes)) // fails only for what a restart could cure
	mux.Handle("/debug/safestore", debug.Handler(pods, nodes))     // for people: states, reasons, a timeline
}

var (
	_, _, _ = readmeUse, readmeErrors, readmeToken
	_, _, _ = readmeChanges, readmeController, readmeHealth
)
