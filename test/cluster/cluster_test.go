package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a cluster that ends with the test.
func start(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	o.Progress = os.Stderr
	begun := time.Now()
	c, err := cluster.Start(t.Context(), o)
	require.NoError(t, err)
	t.Logf("started in %v", time.Since(begun))
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	return c
}

// connect returns a client whose connections end with the test, without a trace
// in client-go's cache of transports.
func connect(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(httpClient.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	return client
}

func write(t *testing.T, client kubernetes.Interface, name string) *corev1.ConfigMap {
	t.Helper()
	written, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return written
}

// names returns the names of all ConfigMaps that tests wrote.
func names(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

// watchError watches from a version and returns the error that the server
// answers, which it may give with the status or as the first event, or nil if
// it has events for us.
func watchError(t *testing.T, client kubernetes.Interface, version string) error {
	t.Helper()
	w, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return err
	}
	defer w.Stop()
	event := <-w.ResultChan()
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	return nil
}

// processes returns the command lines of all processes that mention dir.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-eo", "pid=,stat=,args=").Output()
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestAnAPIServerKeepsAddressUsersAndObjectsOverARestart(t *testing.T) {
	c := start(t, cluster.Options{})
	user, err := c.AddUser("reader", "system:masters")
	require.NoError(t, err)
	client, reader := connect(t, c.Config()), connect(t, user)
	write(t, client, "before")

	for name, restart := range map[string]func() error{
		"stopped":      func() error { return c.API.Restart(t.Context()) },
		"killed":       func() error { return errors.Join(c.API.Kill(), c.API.Start(t.Context())) },
		"etcd stopped": func() error { return errors.Join(c.Etcd.Stop(), c.Etcd.Start(t.Context())) },
		"etcd killed":  func() error { return errors.Join(c.Etcd.Kill(), c.Etcd.Start(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			url, begun := c.API.URL(), time.Now()
			require.NoError(t, restart())
			t.Logf("restarted in %v", time.Since(begun))
			assert.Equal(t, url, c.API.URL())
			assert.Equal(t, []string{"before"}, names(t, client))
			assert.Equal(t, []string{"before"}, names(t, reader))
		})
	}
}

func TestStopAnswersWatchesAndEndsSoon(t *testing.T) {
	c := start(t, cluster.Options{})
	client := connect(t, c.Config())
	w, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()

	begun := time.Now()
	require.NoError(t, c.API.Stop())
	t.Logf("stopped in %v", time.Since(begun))
	assert.Less(t, time.Since(begun), 20*time.Second)
	for range w.ResultChan() {
	}
}

func TestRBACIsEnforced(t *testing.T) {
	c := start(t, cluster.Options{})
	user, err := c.AddUser("nobody")
	require.NoError(t, err)
	_, err = connect(t, user).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestAWatchFromACompactedVersionIsGone(t *testing.T) {
	c := start(t, cluster.Options{})
	client := connect(t, c.Config())
	first := write(t, client, "first")
	write(t, client, "second")
	require.NoError(t, watchError(t, client, first.ResourceVersion))

	uncached, err := c.StartReplica(t.Context(), "--watch-cache=false")
	require.NoError(t, err)
	replica := connect(t, uncached.Config())
	assert.NotEqual(t, c.API.URL(), uncached.URL())
	require.NoError(t, watchError(t, replica, first.ResourceVersion), "not compacted yet")

	revision, err := c.Etcd.Compact(t.Context())
	require.NoError(t, err)
	old, err := strconv.ParseInt(first.ResourceVersion, 10, 64)
	require.NoError(t, err)
	assert.Greater(t, revision, old)

	err = watchError(t, replica, first.ResourceVersion)
	assert.True(t, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "without watch cache: %v", err)
	assert.NoError(t, watchError(t, client, first.ResourceVersion), "the watch cache still has it")
	require.NoError(t, c.API.Restart(t.Context()))
	err = watchError(t, client, first.ResourceVersion)
	assert.True(t, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "after a restart: %v", err)
}

func TestRestoreRewindsObjectsAndVersions(t *testing.T) {
	c := start(t, cluster.Options{})
	client := connect(t, c.Config())
	write(t, client, "kept")
	begun := time.Now()
	snapshot, err := c.Etcd.Snapshot()
	require.NoError(t, err)
	t.Logf("copied in %v", time.Since(begun))
	lost := write(t, client, "lost")
	for i := range 50 {
		lost = write(t, client, fmt.Sprintf("lost-%d", i))
	}

	for range 2 { // a snapshot is not used up
		require.NoError(t, c.API.Stop())
		require.NoError(t, c.Etcd.Restore(t.Context(), snapshot))
		require.NoError(t, c.API.Start(t.Context()))
		list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, []string{"kept"}, names(t, client))
		before, err := strconv.ParseInt(lost.ResourceVersion, 10, 64)
		require.NoError(t, err)
		now, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
		require.NoError(t, err)
		assert.Less(t, now, before)
	}
}

func TestASuspendedAPIServerHangsAndGoesOn(t *testing.T) {
	c := start(t, cluster.Options{})
	client := connect(t, c.Config())
	require.NoError(t, c.API.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, c.API.Signal(syscall.SIGCONT))
	assert.Empty(t, names(t, client))
}

func TestEtcdHoldsWhatTheAPIServerWrote(t *testing.T) {
	c := start(t, cluster.Options{})
	write(t, connect(t, c.Config()), "written")
	client, err := c.Etcd.Client()
	require.NoError(t, err)
	defer client.Close()
	got, err := client.Get(t.Context(), "/registry/configmaps/default/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	assert.Equal(t, "/registry/configmaps/default/written", string(got.Kvs[0].Key))
}

func TestStopLeavesNothing(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr})
	require.NoError(t, err)
	_, err = c.StartReplica(t.Context())
	require.NoError(t, err)
	dir := filepath.Dir(c.Etcd.Dir())
	assert.Len(t, processes(t, dir), 3*2, "three servers, each with its watchdog")

	begun := time.Now()
	require.NoError(t, c.Stop())
	t.Logf("stopped in %v", time.Since(begun))
	assert.Empty(t, processes(t, dir))
	assert.NoDirExists(t, dir)
	assert.NoError(t, c.Stop(), "a second time")
}

func TestAFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := cluster.Start(t.Context(), cluster.Options{APIServerArgs: []string{"--no-such-flag=1"}})
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")
	assert.Empty(t, processes(t, os.Getenv("TMPDIR")))
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "kube-safestore-*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	_, err = cluster.Start(t.Context(), cluster.Options{APIServerArgs: []string{"-v", "2"}})
	require.ErrorContains(t, err, "--name=value")
}

func TestAStartEndsWithItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	stop := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(700*time.Millisecond, func() { cancel(stop) })
	begun := time.Now()
	_, err := cluster.Start(ctx, cluster.Options{})
	require.ErrorIs(t, err, stop)
	assert.Less(t, time.Since(begun), 15*time.Second)
	assert.Empty(t, processes(t, os.Getenv("TMPDIR")))
}

// TestServersEndWithTheirParent runs this test binary again as a parent that is
// killed.
func TestServersEndWithTheirParent(t *testing.T) {
	if os.Getenv("SAFESTORE_TEST_PARENT") != "" {
		_, err := cluster.Start(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	dir := t.TempDir()
	parent := exec.Command(os.Args[0], "-test.run=^TestServersEndWithTheirParent$")
	parent.Env = append(os.Environ(), "SAFESTORE_TEST_PARENT=1", "TMPDIR="+dir)
	out, err := parent.CombinedOutput()
	require.ErrorContains(t, err, "killed", "%s", out)
	require.Eventually(t, func() bool { return len(processes(t, dir)) == 0 }, 15*time.Second, 100*time.Millisecond)
}
