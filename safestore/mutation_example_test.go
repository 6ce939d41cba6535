package safestore_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// A test of a program that forgets DeepCopy. SAFESTORE_MUTATION_DETECTOR=true
// finds the same in tests that know nothing of it.
func ExampleWithMutationDetector() {
	client := fake.NewClientset(pod("shop", "cart"))
	pods, err := safestore.New(watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{},
		safestore.WithMutationDetector[*corev1.Pod](func(e *safestore.MutationError) { fmt.Println(e) }))
	if err != nil {
		panic(err)
	}
	ctx, cancel := quiet()
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()

	cart, err := pods.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "cart"})
	if err != nil {
		panic(err)
	}
	cart.Labels = map[string]string{"app": "cart"} // all readers get to see this

	cancel()
	<-ended
	// Output:
	// safestore: v1.Pod: v1.Pod shop/cart was changed in place: metadata.labels["app"]; all readers share it: change a DeepCopy
}
