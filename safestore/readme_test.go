//lint:file-ignore SA4006 the README shows two reads below each other
package safestore_test

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
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
	for {
		tok, err := pods.WaitReady(ctx)
		if err != nil {
			return err // ctx ended, or the store is closed
		}
		work, cancel := tok.Tie(ctx) // ends with the token, and with ctx
		err = reconcileAll(work)
		cancel()
		if err != nil && tok.State() != token.Revoked {
			return err // its own; else it begins again under the next token
		}
	}
}

var _, _, _ = readmeUse, readmeErrors, readmeToken
