package health_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/health"
	"github.com/kube-safestore/kube-safestore/watcher"
)

func ExampleReady() {
	client := fake.NewSimpleClientset()
	pods, err := safestore.New[*corev1.Pod](watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{Name: "pods"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ready := health.Ready(30*time.Second, pods)
	live := health.Live(15*time.Minute, pods)
	mux := http.NewServeMux()
	mux.Handle("/readyz", ready)
	mux.Handle("/readyz/{check...}", ready)
	mux.Handle("/livez", live)

	for _, url := range []string{"/readyz", "/readyz/pods", "/livez?verbose"} { // before pods.Run
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, url, nil))
		fmt.Printf("%s: %d\n%s", url, answer.Code, answer.Body)
	}
	// Output:
	// /readyz: 500
	// [-]pods failed: reason withheld
	// readyz check failed
	// /readyz/pods: 500
	// internal server error: pods is not ready: Run was not called
	// /livez?verbose: 200
	// [+]pods ok
	// livez check passed
}
