package prometheus_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
	safeprom "github.com/kube-safestore/kube-safestore/safestore/prometheus"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// The metrics of a store, as they are served.
func ExampleNewCollector() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{Name: "pods"})
	if err != nil {
		panic(err)
	}
	stopped := make(chan error)
	go func() { stopped <- pods.Run(ctx) }()
	if _, err := pods.WaitReady(ctx); err != nil {
		panic(err)
	}

	registry := prom.NewRegistry()
	registry.MustRegister(safeprom.NewCollector(pods))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})

	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(response.Body.String()) {
		if strings.HasPrefix(line, "safestore_objects") || strings.HasPrefix(line, "safestore_ready") {
			fmt.Print(line)
		}
	}
	cancel()
	<-stopped
	// Output:
	// safestore_objects{store="pods"} 1
	// safestore_ready{store="pods"} 1
}
