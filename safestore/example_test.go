package safestore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// pod is what the examples' cluster is made of.
func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// quiet is a context whose stores do not log.
func quiet() (context.Context, context.CancelFunc) {
	return context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
}

// A store is made of a client, runs in the background, and is read like a lister
// that can say no.
func ExampleStore() {
	client := fake.NewClientset(pod("shop", "cart"), pod("shop", "checkout"), pod("mail", "sender"))
	ctx, cancel := quiet()
	defer cancel()

	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	// Get waits until the store is ready. Its NotFound means that the pod does not
	// exist; whatever else goes wrong is another error.
	cart, err := pods.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "cart"})
	fmt.Println(cart.Name, err)
	_, err = pods.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "gift"})
	fmt.Println(apierrors.IsNotFound(err), errors.Is(err, safestore.ErrNotReady))

	shop, err := pods.List(ctx, safestore.InNamespace("shop"))
	fmt.Println(len(shop), err)
	// Output:
	// cart <nil>
	// true false
	// 2 <nil>
}

// Reads that belong together are made on one snapshot: it does not change.
func ExampleStore_Snapshot() {
	client := fake.NewClientset(pod("shop", "cart"), pod("shop", "checkout"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}

	// Snapshot never waits. Without an answer it has a reason.
	_, err = pods.Snapshot()
	fmt.Println(err)

	go pods.Run(ctx)
	if _, err := pods.WaitReady(ctx); err != nil {
		panic(err)
	}
	snapshot, err := pods.Snapshot()
	if err != nil {
		panic(err)
	}
	var names []string
	for key := range snapshot.All() {
		names = append(names, key.String())
	}
	slices.Sort(names)
	fmt.Println(snapshot.Len(), names)
	// Output:
	// store is not ready: v1.Pod, generation 1: Run was not called
	// 2 [shop/cart shop/checkout]
}

// Work that depends on the store runs under the context of the token. It ends
// when the store can no longer be trusted, and the cause says why.
func ExampleStore_WaitReady() {
	client := fake.NewClientset(pod("shop", "cart"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	for range 2 {
		token, err := pods.WaitReady(ctx)
		if err != nil {
			panic(err)
		}
		ended := make(chan struct{})
		go func() { // the work
			defer close(ended)
			<-token.Context().Done()
			var revocation *invalidation.Revocation
			errors.As(context.Cause(token.Context()), &revocation)
			fmt.Println("generation", revocation.Generation, "ended:", revocation.Reason)
		}()
		pods.Revoke(token, errors.New("the program knows better"))
		<-ended
	}
	// Output:
	// generation 1 ended: Requested
	// generation 2 ended: Requested
}

// Hooks hear of readiness and of its end, each generation once and in order.
func ExampleStore_OnRevoke() {
	client := fake.NewClientset(pod("shop", "cart"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	heard := make(chan *invalidation.Revocation)
	remove := pods.OnRevoke(func(r *invalidation.Revocation) { heard <- r })
	defer remove()
	go pods.Run(ctx)

	token, err := pods.WaitReady(ctx)
	if err != nil {
		panic(err)
	}
	pods.Revoke(token, errors.New("the program knows better"))
	r := <-heard
	fmt.Println("generation", r.Generation, r.Reason, r.Cause)
	fmt.Println(errors.Is(r, invalidation.Requested), errors.Is(r, invalidation.Forbidden))
	// Output:
	// generation 1 Requested the program knows better
	// true false
}

// Who would rather have old data than none asks for it by name.
func ExampleStore_Stale() {
	client := fake.NewClientset(pod("shop", "cart"))
	ctx, cancel := quiet()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()
	if _, err := pods.WaitReady(ctx); err != nil {
		panic(err)
	}
	cancel()
	<-ended

	_, err = pods.Snapshot()
	fmt.Println("not ready:", errors.Is(err, safestore.ErrNotReady), errors.Is(err, invalidation.Closed))
	old, age := pods.Stale()
	fmt.Println("but there were", old.Len(), "pods a moment ago:", age > 0)
	// Output:
	// not ready: true true
	// but there were 1 pods a moment ago: true
}
