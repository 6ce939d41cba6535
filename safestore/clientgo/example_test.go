package clientgo_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// podStore returns a store of a cluster with three pods, not yet running.
func podStore() *safestore.Store[*corev1.Pod] {
	client := fake.NewClientset(pod("shop", "cart", "n1"), pod("shop", "checkout", "n2"), pod("mail", "sender", "n1"))
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	return pods
}

// Code that takes a generated lister takes one on a store.
func ExampleIndexer() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	pods := podStore()
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()
	lister := corelisters.NewPodLister(clientgo.Indexer(context.Background(), pods))

	all, err := lister.List(labels.Everything()) // waits until the store is ready
	fmt.Println(len(all), err)
	shop, err := lister.Pods("shop").List(labels.Everything())
	fmt.Println(len(shop), err)
	_, err = lister.Pods("shop").Get("gift")
	fmt.Println("absent:", apierrors.IsNotFound(err))

	// Of a store that is not ready, nothing is absent.
	cancel()
	<-ended
	_, err = lister.Pods("shop").Get("gift")
	fmt.Println("absent:", apierrors.IsNotFound(err), "not ready:", errors.Is(err, safestore.ErrNotReady))
	// Output:
	// 3 <nil>
	// 2 <nil>
	// absent: true
	// absent: false not ready: true
}

// The wait of a List ends with the store. Recover makes it an error.
func ExampleRecover() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	pods := podStore()
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()
	lister := corelisters.NewPodLister(clientgo.Indexer(context.Background(), pods))

	count := func() (n int, err error) {
		defer clientgo.Recover(&err)
		all, err := lister.List(labels.Everything())
		return len(all), err
	}
	fmt.Println(count())
	cancel()
	<-ended
	_, err := count()
	fmt.Println(errors.Is(err, safestore.ErrNotReady), errors.Is(err, invalidation.Closed))
	// Output:
	// 3 <nil>
	// true true
}

// Code that waits for caches to be in sync before it starts waits for a store.
func ExampleDoneChecker() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	pods := podStore()
	go pods.Run(ctx)

	checker := clientgo.DoneChecker(pods)
	fmt.Println(checker.Name(), cache.WaitFor(ctx, "caches", checker))

	// The checker goes one way. The token does not.
	token := pods.Token()
	pods.Revoke(token, errors.New("the program knows better"))
	fmt.Println("checker:", cache.IsDone(checker), "token:", token.State())
	// Output:
	// SafeStore v1.Pod true
	// checker: true token: Revoked
}

// Where a function is asked, the answer is about now.
func ExampleHasSynced() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	pods := podStore()
	synced := clientgo.HasSynced(pods)
	fmt.Println(synced())
	go pods.Run(ctx)
	fmt.Println(cache.WaitForCacheSync(ctx.Done(), synced))
	// Output:
	// false
	// true
}
