package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/health"
	"github.com/kube-safestore/kube-safestore/watcher"
)

var _ healthz.Checker = (*health.Check)(nil).Check

// answerOf returns what a health endpoint of the API server says.
func answerOf(t *testing.T, config *rest.Config, path string) *http.Response {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// likeServer returns stores that are called as the checks of the API server's answer
// are, and are ready if these passed.
func likeServer(t *testing.T, answer string) []safestore.Readiness {
	t.Helper()
	var all []safestore.Readiness
	for _, line := range regexp.MustCompile(`(?m)^\[([+-])](\S+) `).FindAllStringSubmatch(answer, -1) {
		source := watcher.ListWatch(fake.NewSimpleClientset().CoreV1().ConfigMaps(""))
		s, err := safestore.New[*corev1.ConfigMap](source, safestore.Options{Name: line[2]})
		require.NoError(t, err)
		if line[1] == "+" {
			ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			t.Cleanup(func() {
				cancel()
				assert.NoError(t, <-done)
			})
			_, err := s.WaitReady(t.Context())
			require.NoError(t, err)
		}
		all = append(all, s)
	}
	require.NotEmpty(t, all)
	return all
}

// The health pages are those of kube-apiserver, byte for byte: here with all of its
// checks passed, and with its etcd stopped.
func TestHealthPagesAreLikeTheServers(t *testing.T) {
	env := own(t)
	config := env.Config()
	compare := func(path string, code int) {
		t.Helper()
		theirs := answerOf(t, config, path)
		body, err := io.ReadAll(theirs.Body)
		require.NoError(t, err)
		require.Equal(t, code, theirs.StatusCode, "%s", body)
		ours := httptest.NewRecorder()
		checks := string(body)
		if checks == "ok" { // they are not named then
			checks = "[+]ping ok"
		}
		health.Ready(0, likeServer(t, checks)...).ServeHTTP(ours, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, theirs.StatusCode, ours.Code, path)
		assert.Equal(t, string(body), ours.Body.String(), path)
		for _, header := range []string{"Content-Type", "X-Content-Type-Options"} {
			assert.Equal(t, theirs.Header.Get(header), ours.Header().Get(header), "%s %s", path, header)
		}
	}
	compare("/readyz", 200)
	compare("/readyz?verbose", 200)
	compare("/readyz?verbose&exclude=etcd&exclude=nonsense&exclude=more", 200)

	require.NoError(t, env.Etcd.Signal(syscall.SIGSTOP))
	defer func() { assert.NoError(t, env.Etcd.Signal(syscall.SIGCONT)) }()
	require.Eventually(t, func() bool { return answerOf(t, config, "/readyz").StatusCode == 500 }, patience, time.Second)
	compare("/readyz", 500)
	compare("/readyz?verbose", 500)
}
