// Confighash is a controller that keeps an annotation with the hash of its content on
// each ConfigMap. It works only while its copy of the ConfigMaps can be trusted.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

const annotation = "confighash.example.com/sha256"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`FILE` with the access to the cluster; that of the pod if empty")
	namespace := flag.String("namespace", "", "work on this namespace alone; on all if empty")
	staleness := flag.Duration("max-staleness", 30*time.Second, "do not work on data that may be older than this")
	workers := flag.Int("workers", 2, "ConfigMaps to work on at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *staleness, *workers); err != nil {
		klog.ErrorS(err, "Ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace string, staleness time.Duration, workers int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	maps, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(client.CoreV1().ConfigMaps(namespace)),
		safestore.Options{MaxStaleness: staleness})
	if err != nil {
		return err
	}
	maps.OnReady(func(t *token.Token) { klog.InfoS("Ready", "generation", t.Generation()) })
	maps.OnRevoke(func(r *invalidation.Revocation) { klog.InfoS("Not ready", "cause", r) })
	h := hasher{client, maps}
	c, err := controller.New("confighash", h.reconcile, controller.Options{Workers: workers}, controller.For(maps))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var store sync.WaitGroup
	defer store.Wait()
	defer cancel() // also if the controller fails
	store.Go(func() { _ = maps.Run(ctx) })
	return c.Run(ctx)
}

type hasher struct {
	client kubernetes.Interface
	maps   *safestore.Store[*corev1.ConfigMap]
}

// reconcile brings the annotation of one ConfigMap up to date. That its own update
// brings it here again does no harm: then there is nothing to do.
func (h hasher) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	maps, err := h.maps.In(req.Snapshot)
	if err != nil {
		return controller.Result{}, err
	}
	m, err := maps.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // it was deleted, for certain
	}
	if err != nil {
		return controller.Result{}, err
	}
	hash, err := hashOf(m)
	if err != nil || m.Annotations[annotation] == hash {
		return controller.Result{}, err
	}
	// ctx ends with the right to act on what was read. The version makes sure that
	// it is still so when the server gets to see this.
	update := applycorev1.ConfigMap(m.Name, m.Namespace).WithResourceVersion(m.ResourceVersion).
		WithAnnotations(map[string]string{annotation: hash})
	_, err = h.client.CoreV1().ConfigMaps(m.Namespace).Apply(ctx, update, metav1.ApplyOptions{FieldManager: "confighash", Force: true})
	if apierrors.IsConflict(err) {
		return controller.Result{}, nil // it has changed, and the change is on its way
	}
	if err == nil {
		klog.FromContext(ctx).Info("Annotated")
	}
	return controller.Result{}, err
}

// hashOf returns the hash of a ConfigMap's content.
func hashOf(m *corev1.ConfigMap) (string, error) {
	content, err := json.Marshal([]any{m.Data, m.BinaryData}) // with sorted keys
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), err
}
