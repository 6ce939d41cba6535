package safestore_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// The changes of a store are a loop. It is told when the store is ready and when
// it no longer is, and after that only what is different.
func ExampleSubscription_Changes() {
	client := fake.NewClientset(pod("shop", "cart"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	for change, err := range pods.Subscribe("printer", safestore.InNamespace("shop")).Changes(ctx) {
		if err != nil {
			fmt.Println(err)
			break
		}
		switch change.Type {
		case safestore.Init:
			fmt.Println("generation", change.Token.Generation())
		case safestore.Added:
			fmt.Println("  added", change.New.Name)
		case safestore.Updated:
			fmt.Println("  updated", change.Old.Name)
		case safestore.Deleted:
			fmt.Println("  deleted", change.Old.Name)
		case safestore.InitDone:
			fmt.Println("  that is all there is")
			if change.Token.Generation() == 2 {
				cancel()
				continue
			}
			_, err := client.CoreV1().Pods("shop").Create(ctx, pod("shop", "checkout"), metav1.CreateOptions{})
			if err != nil {
				panic(err)
			}
			if err := pods.Sync(ctx); err != nil { // for the example's sake: wait until the store has it
				panic(err)
			}
			pods.Revoke(change.Token, errors.New("the program knows better"))
		case safestore.Revoked:
			fmt.Println("  not to be relied on:", change.Revocation.Reason)
		}
	}
	// Output:
	// generation 1
	//   added cart
	//   that is all there is
	//   not to be relied on: Requested
	// generation 2
	//   added checkout
	//   that is all there is
	// context canceled
}

// Work that needs all of the changes dealt with waits for that, by subscription.
func ExampleSubscription_WaitCaughtUp() {
	client := fake.NewClientset(pod("shop", "cart"), pod("shop", "checkout"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	names := map[string]bool{}
	sub := pods.Subscribe("names")
	ended := make(chan error)
	go func() {
		ended <- sub.Handle(ctx, safestore.Isolate(func(c safestore.Change[*corev1.Pod]) error {
			switch c.Type {
			case safestore.Added:
				names[c.Key.Name] = true
			case safestore.Deleted:
				delete(names, c.Key.Name)
			}
			return nil
		}))
	}()
	token, err := sub.WaitCaughtUp(ctx)
	fmt.Println("generation", token.Generation(), err)
	fmt.Println(pods.Status().Subscriptions[0].Changes, "changes")
	cancel()
	fmt.Println(<-ended, len(names))
	// Output:
	// generation 1 <nil>
	// 2 changes
	// <nil> 2
}
