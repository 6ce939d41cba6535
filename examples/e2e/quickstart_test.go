// Package e2e runs the example programs as their users do, on a real control
// plane. It is left out by go test -short.
package e2e

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

// quickstart is the program, built and about to be started.
type quickstart struct {
	*exec.Cmd
	out, err bytes.Buffer
}

// command builds the program. It will work in directories of the test's own, in
// which nothing may be left, and by which its processes are known.
func command(t *testing.T, args ...string) *quickstart {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	// What is built once is built now, so that it counts for no time limit.
	assets, err := cluster.Assets(t.Context(), os.Stderr)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "quickstart")
	out, err := exec.Command("go", "build", "-o", program, "../quickstart").CombinedOutput()
	require.NoError(t, err, "%s", out)

	q := &quickstart{Cmd: exec.CommandContext(t.Context(), program, args...)}
	tmp := t.TempDir()
	q.Env = append(os.Environ(), "TMPDIR="+tmp, "KUBEBUILDER_ASSETS="+assets, "KUBECONFIG="+filepath.Join(tmp, "none"))
	q.Stdout, q.Stderr = &q.out, &q.err
	t.Cleanup(func() {
		left, err := os.ReadDir(tmp)
		assert.NoError(t, err)
		assert.Empty(t, left)
		processes, err := exec.Command("ps", "-eo", "pid=,args=").Output()
		assert.NoError(t, err)
		assert.NotContains(t, string(processes), tmp, "a server is left running")
	})
	return q
}

// run returns the output of a program that must succeed.
func (q *quickstart) run(t *testing.T) string {
	t.Helper()
	begun := time.Now()
	err := q.Run()
	t.Logf("after %v:\n%s", time.Since(begun), &q.out)
	require.NoError(t, err, "%s", &q.err)
	assert.Empty(t, q.err.String())
	assert.NotContains(t, q.out.String(), "\x1b", "no terminal, no colour")
	assert.Equal(t, 1, strings.Count(q.out.String(), "\nOK after "))
	return q.out.String()
}

// states returns the different values of the timeline's middle column, in order.
func states(timeline string) (states []string) {
	for _, match := range regexp.MustCompile(`(?m)^ *[\d.]+s  (gen \d+ \w+) `).FindAllStringSubmatch(timeline, -1) {
		if state := match[1]; len(states) == 0 || states[len(states)-1] != state {
			states = append(states, state)
		}
	}
	return states
}

func TestQuickstart(t *testing.T) {
	out := command(t).run(t)
	assert.Equal(t, []string{
		"gen 1 Pending", "gen 1 Ready", "gen 2 Pending", "gen 2 Ready", "gen 3 Pending", "gen 3 Ready",
		"gen 1 Pending", "gen 1 Ready", "gen 2 Pending", "gen 2 Ready",
	}, states(out))
	flat := strings.Join(strings.Fields(out), " ") // wherever lines were broken
	for _, want := range []string{
		`Run was not called`,
		`The Get that waited is answered: settings=v1`,
		`store.WaitFor\(written\) returns after [\d.]+m?s, and store.Get says settings=v2`,
		`for Relist: the server answered 410 Expired`,
		`SafeStore: store is not ready: Relist: (watch: )?too old resource version`,
		`for Forbidden: the server answered 403 Forbidden`,
		`SafeStore: store is not ready: Forbidden: (list: |watch: )?configmaps is forbidden: User "quickstart-reader" cannot (list|watch)`,
		`client-go: HasSynced\(\)=true, settings=v\d, added not found`,
		`SafeStore: settings=v3, added=v1`,
		`REVOKED: generation 1, for St(uck|ale)\. .*` +
			`SafeStore: store is not ready: St(uck|ale).* ` +
			`client-go: HasSynced\(\)=true, settings=v3 \S+ gen 2 Pending cluster: settings=v4 .*` +
			`SafeStore: settings=v4 .*client-go: HasSynced\(\)=true, settings=v3 \S+ gen 2 Ready cluster: settings=v4`,
		`generations 1, 2, 3 and 1, 2; revoked for Relist, Forbidden, St(uck|ale)`,
	} {
		assert.Regexp(t, want, flat)
	}
}

func TestQuickstartOnAnExistingCluster(t *testing.T) {
	q := command(t)
	c, err := cluster.Start(t.Context(), cluster.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	config := c.Config()
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
	}, file))

	q.Args = append(q.Args, "-kubeconfig", file)
	out := q.run(t)
	assert.Subset(t, states(out), []string{"gen 1 Ready", "gen 2 Ready", "gen 3 Pending", "gen 3 Ready"})
	assert.Regexp(t, "generations 1, 2, 3 and 1, 2; revoked for Requested, Forbidden, St(uck|ale)", out)

	connection, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer connection.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, connection)
	require.NoError(t, err)
	list, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, namespace := range list.Items {
		if strings.HasPrefix(namespace.Name, "quickstart-") {
			assert.Equal(t, corev1.NamespaceTerminating, namespace.Status.Phase)
		}
	}
}

// TestQuickstartInterrupted ends the program while its API server is down.
func TestQuickstartInterrupted(t *testing.T) {
	q := command(t)
	q.Stdout = nil
	out, err := q.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, q.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "The API server restarts") {
	}
	require.NoError(t, q.Process.Signal(os.Interrupt))
	begun := time.Now()
	_, _ = io.Copy(io.Discard, out)
	require.Error(t, q.Wait())
	assert.Equal(t, 130, q.ProcessState.ExitCode())
	assert.Contains(t, q.err.String(), "INTERRUPTED: step 4")
	assert.Less(t, time.Since(begun), 20*time.Second)
}

func TestQuickstartThatFailsSaysSo(t *testing.T) {
	assets := t.TempDir()
	for _, name := range []string{"kube-apiserver", "etcd"} {
		require.NoError(t, os.WriteFile(filepath.Join(assets, name), []byte("#!/bin/sh\necho no luck; exit 1\n"), 0o755))
	}
	q := command(t)
	q.Env = append(q.Env, "KUBEBUILDER_ASSETS="+assets)
	require.Error(t, q.Run())
	assert.Equal(t, 1, q.ProcessState.ExitCode())
	assert.Contains(t, q.err.String(), "FAILED: step 0")
	assert.Contains(t, q.err.String(), "no luck")
}
