package controller_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// A controller of nodes that counts their pods. It works when a node changes, and
// when a pod comes to a node or leaves one, and only while both stores can be
// trusted.
func Example() {
	client := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "small"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Spec: corev1.PodSpec{NodeName: "small"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"}, Spec: corev1.PodSpec{NodeName: "small"}},
	)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()

	nodes, err := safestore.New[*corev1.Node](watcher.ListWatch(client.CoreV1().Nodes()), safestore.Options{})
	if err != nil {
		panic(err)
	}
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{},
		safestore.WithIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }))
	if err != nil {
		panic(err)
	}
	go nodes.Run(ctx)
	go pods.Run(ctx)

	nodeOf := func(p *corev1.Pod) []types.NamespacedName { return []types.NamespacedName{{Name: p.Spec.NodeName}} }
	count := func(ctx context.Context, req controller.Request) (controller.Result, error) {
		nodes, err := nodes.In(req.Snapshot) // as they were together
		if err != nil {
			return controller.Result{}, err
		}
		pods, err := pods.In(req.Snapshot)
		if err != nil {
			return controller.Result{}, err
		}
		switch _, err := nodes.Get(req.Key); {
		case apierrors.IsNotFound(err):
			return controller.Result{}, nil // it was deleted
		case err != nil:
			return controller.Result{}, err
		}
		n, err := pods.Count(safestore.ByIndex("node", req.Key.Name))
		if err != nil {
			return controller.Result{}, err
		}
		fmt.Println(req.Key.Name, "has", n, "pods")
		cancel() // the example is over
		return controller.Result{RequeueAfter: time.Hour}, nil
	}
	c, err := controller.New("pods-of-nodes", count, controller.Options{Workers: 2},
		controller.For(nodes), controller.Watches(pods, controller.OldAndNew(nodeOf)))
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Run(ctx))
	// Output:
	// small has 2 pods
	// <nil>
}

// A controller that runs only while this process leads. The stores run all the time,
// so that a new leader can begin at once. Work ends with the leadership, and with
// the readiness of the stores, whichever comes first (C54); and the lock is let go
// of when it has ended, so that there are no two leaders at work.
func ExampleController_Run_leaderElection() {
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}})
	life, end := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer end() // of the store: after that of the controller
	maps, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(client.CoreV1().ConfigMaps("default")), safestore.Options{})
	if err != nil {
		panic(err)
	}
	go maps.Run(life)

	ctx, cancel := context.WithCancel(life)
	defer cancel()
	c, err := controller.New("leader", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		fmt.Println("works on", req.Key)
		cancel() // SIGTERM, say
		<-ctx.Done()
		return controller.Result{}, context.Cause(ctx)
	}, controller.Options{}, controller.For(maps))
	if err != nil {
		panic(err)
	}
	fmt.Println(runAsLeader(ctx, client, "one", c.Run))
	lease, err := client.CoordinationV1().Leases("default").Get(context.Background(), "example", metav1.GetOptions{})
	fmt.Printf("held by %q %v\n", *lease.Spec.HolderIdentity, err)
	// Output:
	// works on default/settings
	// <nil>
	// held by "" <nil>
}

// runAsLeader waits until this process leads, and runs work until it leads no more
// or ctx ends.
func runAsLeader(ctx context.Context, client kubernetes.Interface, identity string, work func(context.Context) error) error {
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "example"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { started <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	// The lock is held for longer than ctx: until work has returned.
	hold, release := context.WithCancel(context.WithoutCancel(ctx))
	released := make(chan struct{})
	go func() {
		defer close(released)
		elector.Run(hold)
	}()
	defer func() {
		release()
		<-released
	}()
	select {
	case leading := <-started:
		leading, stop := context.WithCancelCause(leading)
		defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
		return work(leading)
	case <-ctx.Done():
		return nil
	}
}
