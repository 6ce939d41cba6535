package safestore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

func podOn(node, namespace, name string) *corev1.Pod {
	p := pod(namespace, name)
	p.Spec.NodeName = node
	return p
}

// Indexes are declared with the store, and asked for by name.
func ExampleWithFieldIndex() {
	client := fake.NewClientset(podOn("n1", "shop", "cart"), podOn("n2", "shop", "checkout"), podOn("n1", "mail", "sender"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New(watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{},
		safestore.WithFieldIndex("spec.nodeName", func(p *corev1.Pod) string { return p.Spec.NodeName }))
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	list, err := pods.List(ctx, safestore.ByIndex("spec.nodeName", "n1"), safestore.Sorted())
	for _, p := range list {
		fmt.Println(safestore.Key(p), err)
	}
	_, err = pods.List(ctx, safestore.ByIndex("spec.node", "n1"))
	fmt.Println(err)
	// Output:
	// mail/sender <nil>
	// shop/cart <nil>
	// safestore: no index "spec.node": there are "spec.nodeName"
}

// Select iterates without a slice in between; Count does not even do that.
func ExampleSnapshot_Select() {
	client := fake.NewClientset(pod("shop", "cart"), pod("shop", "checkout"), pod("mail", "sender"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	snapshot, err := pods.WaitSnapshot(ctx)
	if err != nil {
		panic(err)
	}
	shop, err := snapshot.Select(safestore.InNamespace("shop"), safestore.Sorted())
	if err != nil {
		panic(err)
	}
	for key := range shop {
		fmt.Println(key)
	}
	count, err := snapshot.Count(safestore.InNamespace("shop"))
	fmt.Println(count, err)
	// Output:
	// shop/cart
	// shop/checkout
	// 2 <nil>
}

// Objects are shared by all readers. Who wants to change one reads a copy.
func ExampleDeepCopy() {
	client := fake.NewClientset(pod("shop", "cart"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	cart, err := pods.GetDeepCopy(ctx, types.NamespacedName{Namespace: "shop", Name: "cart"})
	if err != nil {
		panic(err)
	}
	cart.Labels = map[string]string{"checked": "true"}
	all, err := pods.List(ctx, safestore.DeepCopy())
	if err != nil {
		panic(err)
	}
	fmt.Println(all[0].Labels)
	// Output: map[]
}

// Decisions that read several stores are made on one snapshot of all of them,
// under one token.
func ExampleGroup() {
	client := fake.NewClientset(podOn("n1", "shop", "cart"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	nodes, err := safestore.New[*corev1.Node](watcher.ListWatch(client.CoreV1().Nodes()), safestore.Options{})
	if err != nil {
		panic(err)
	}
	both, err := safestore.NewGroup("scheduler", pods, nodes)
	if err != nil {
		panic(err)
	}
	defer both.Close()
	go pods.Run(ctx)
	go nodes.Run(ctx)

	joint, err := both.WaitSnapshot(ctx)
	if err != nil {
		panic(err)
	}
	podsNow, _ := pods.In(joint)
	nodesNow, _ := nodes.In(joint)
	for _, p := range podsNow.All() {
		node, err := nodesNow.Get(types.NamespacedName{Name: p.Spec.NodeName})
		fmt.Println(p.Name, "runs on", node.Name, err)
	}
	fmt.Println(joint.Token().State()) // over as soon as either store is
	// Output:
	// cart runs on n1 <nil>
	// Ready
}

// A lenient store lives with objects that cannot be decoded, and says so. It
// decodes what a dynamic client brings.
func ExampleOptions_lenient() {
	good := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": "shop", "name": "cart"}}}
	bad := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": "shop", "name": "old"},
		"spec":     map[string]any{"activeDeadlineSeconds": "soon"}}}
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, []runtime.Object{good, bad}...)
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](
		watcher.ListWatch(client.Resource(corev1.SchemeGroupVersion.WithResource("pods"))), safestore.Options{Lenient: true})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	list, err := pods.List(ctx)
	fmt.Println(len(list), errors.Is(err, safestore.ErrPartial))
	_, err = pods.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "old"})
	fmt.Println(err)
	// Output:
	// 1 true
	// *v1.Pod shop/old: field spec.activeDeadlineSeconds cannot be decoded into v1.Pod
}

// A program that may read two namespaces, and no others, has them as one store.
func ExampleNamespaces() {
	client := fake.NewClientset(pod("shop", "cart"), pod("mail", "sender"), pod("kube-system", "dns"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.NewNamespaces[*corev1.Pod](func(namespace string) watcher.Source {
		return watcher.ListWatch(client.CoreV1().Pods(namespace))
	}, []string{"shop", "mail"}, safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	list, err := pods.List(ctx, safestore.Sorted())
	for _, p := range list {
		fmt.Println(safestore.Key(p), err)
	}
	_, err = pods.Get(ctx, types.NamespacedName{Namespace: "kube-system", Name: "dns"})
	fmt.Println(err)
	// Output:
	// mail/sender <nil>
	// shop/cart <nil>
	// safestore: v1.Pod: namespace "kube-system" is out of the store's scope: it is none of its namespaces
}

// A label index makes a list by label cost what it returns.
func ExampleWithLabelIndex() {
	cart := pod("shop", "cart")
	cart.Labels = map[string]string{"app": "cart"}
	client := fake.NewClientset(cart, pod("shop", "checkout"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New(watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{},
		safestore.WithLabelIndex[*corev1.Pod]("app"), safestore.WithoutManagedFields[*corev1.Pod]())
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	list, err := pods.List(ctx, safestore.ByIndex("app", "cart"))
	fmt.Println(len(list), err)
	// Output: 1 <nil>
}

// What the program does not read need not be kept.
func ExampleWithTransform() {
	cart := pod("shop", "cart")
	cart.Annotations = map[string]string{"large": "...", "needed": "yes"}
	client := fake.NewClientset(cart)
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New(watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{},
		safestore.WithTransform(func(p *corev1.Pod) (*corev1.Pod, error) {
			delete(p.Annotations, "large")
			return p, nil
		}))
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	kept, err := pods.Get(ctx, safestore.Key(cart))
	fmt.Println(kept.Annotations, err)
	// Output: map[needed:yes] <nil>
}

// A set that outgrows its limit is a reason not to be ready, not the end of the
// process.
func ExampleOptions_limits() {
	client := fake.NewClientset(pod("shop", "cart"), pod("shop", "checkout"), pod("mail", "sender"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{MaxObjects: 2})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	reading, giveUp := context.WithTimeout(ctx, time.Second)
	defer giveUp()
	_, err = pods.List(reading)
	fmt.Println(errors.Is(err, invalidation.TooLarge))
	// Output: true
}

// Who keeps something that was derived from the store drops it before anybody reads
// the next generation.
func ExampleStore_OnRevokeSync() {
	client := fake.NewClientset(pod("shop", "cart"))
	ctx, cancel := quiet()
	defer cancel()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	remove := pods.OnRevokeSync(10*time.Second, func(ctx context.Context, r *invalidation.Revocation) {
		fmt.Println("dropped what was derived from generation", r.Generation)
	})
	go pods.Run(ctx)

	token, err := pods.WaitReady(ctx)
	if err != nil {
		panic(err)
	}
	pods.Revoke(token, nil)
	token, err = pods.WaitReady(ctx)
	fmt.Println("generation", token.Generation(), err)
	remove()
	// Output:
	// dropped what was derived from generation 1
	// generation 2 <nil>
}

// Parts of a program that do not know of each other share a store.
func ExampleShared() {
	client := fake.NewClientset(pod("shop", "cart"))
	ctx, cancel := quiet()
	defer cancel()
	shared := safestore.NewShared(ctx, func() (*safestore.Store[*corev1.Pod], error) {
		return safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{})
	})

	one, releaseOne, err := shared.Acquire()
	if err != nil {
		panic(err)
	}
	other, releaseOther, err := shared.Acquire()
	if err != nil {
		panic(err)
	}
	releaseOne()
	list, err := other.List(ctx)
	fmt.Println(one == other, len(list), err)
	releaseOther() // the last one: the store ends
	shared.Wait()
	fmt.Println(errors.Is(other.NotReady(), invalidation.Closed))
	// Output:
	// true 1 <nil>
	// true
}
