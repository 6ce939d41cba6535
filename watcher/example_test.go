package watcher_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// A store of some of the pods: what is not selected is not there.
func ExampleWithLabelSelector() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	labelled := func(name, app string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"app": app}}}
	}
	client := fake.NewClientset(labelled("cart", "shop"), labelled("checkout", "shop"), labelled("sender", "mail"))

	source := watcher.ListWatch(client.CoreV1().Pods(""),
		watcher.WithLabelSelector(labels.SelectorFromSet(labels.Set{"app": "shop"})),
		watcher.WithFieldSelector(fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))))
	pods, err := safestore.New[*corev1.Pod](source, safestore.Options{})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)

	list, err := pods.List(ctx, safestore.Sorted())
	if err != nil {
		panic(err)
	}
	for _, pod := range list {
		fmt.Println(pod.Name)
	}
	// Output:
	// cart
	// checkout
}
