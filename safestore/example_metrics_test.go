package safestore_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// All metrics, with their labels and types. Names end with the unit, and those of
// counters with "_total".
func ExampleMetrics() {
	for _, m := range safestore.Metrics() {
		fmt.Printf("%s{%s} %s\n", m.Name, strings.Join(m.Labels, ","), m.Type)
	}
	// Output:
	// safestore_ready{store} gauge
	// safestore_generation{store} gauge
	// safestore_revocations_total{store,reason} counter
	// safestore_staleness_seconds{store} gauge
	// safestore_silence_seconds{store} gauge
	// safestore_objects{store} gauge
	// safestore_syncs_total{store} counter
	// safestore_lists_total{store} counter
	// safestore_relists_total{store} counter
	// safestore_watches_total{store} counter
	// safestore_failures_total{store} counter
	// safestore_proofs_asked_total{store} counter
	// safestore_proofs_total{store,result} counter
	// safestore_audits_total{store} counter
	// safestore_apply_duration_seconds{store} histogram
	// safestore_subscription_lag_seconds{store,subscription} gauge
	// safestore_subscription_changes_total{store,subscription} counter
	// safestore_group_ready{group} gauge
	// safestore_group_generation{group} gauge
	// safestore_group_revocations_total{group,reason} counter
}

// Any metrics system can poll a store. For Prometheus there is a collector, in
// safestore/prometheus.
func ExampleSamples() {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	client := fake.NewClientset()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{Name: "pods"})
	if err != nil {
		panic(err)
	}
	go pods.Run(ctx)
	if _, err := pods.WaitReady(ctx); err != nil {
		panic(err)
	}
	for s := range safestore.Samples(pods) {
		if s.Metric == "safestore_ready" {
			fmt.Println(s.Metric, s.Labels, s.Value)
		}
	}
	// Output: safestore_ready [pods] 1
}
