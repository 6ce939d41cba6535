// Package cluster runs a real Kubernetes control plane, kube-apiserver and etcd
// on localhost, for the demo and the end-to-end tests, and breaks it on demand.
//
//	c, err := cluster.Start(ctx, cluster.Options{Progress: os.Stderr})
//	...
//	defer c.Stop()
//	client := kubernetes.NewForConfigOrDie(c.Config())
//	...
//	err = c.API.Restart(ctx)
//
// [Assets] finds the two binaries, or builds the versions pinned in
// test/controlplane once per user. [Start] runs them through controller-runtime's
// envtest, which knows the flags, certificates and health checks. What envtest
// does not offer is here: each server is a value with Start, Stop, Kill and
// Signal that keeps its port, its data and its users over restarts, and
// [Etcd] can be compacted, copied and put back to an earlier state.
//
// There are no controllers and no kubelets: objects are stored, listed and
// watched, RBAC is enforced, custom resources are served, and nothing else
// happens. The API server never compacts etcd by itself, so that versions are
// lost only when a test says so.
//
// The servers do not outlive the program, even if it is killed: each is
// watched by a small shell loop that ends it with its parent. The package needs
// a Unix system.
//
// # Concurrency
//
// All methods may be called from any goroutine. Calls on one server run one
// after another; a caller that starts and stops the same server from two
// goroutines gets some order of the two.
package cluster
