package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

// output is what a program writes while it runs.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// hashed is a cluster whose ConfigMaps the example works on.
type hashed struct {
	*cluster.Cluster
	t      *testing.T
	client kubernetes.Interface
	log    output
}

func (h *hashed) write(name, value string) {
	h.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
	maps := h.client.CoreV1().ConfigMaps("default")
	_, err := maps.Create(h.t.Context(), m, metav1.CreateOptions{})
	if err != nil {
		patch := `{"data":{"key":"` + value + `"}}`
		_, err = maps.Patch(h.t.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	}
	require.NoError(h.t, err)
}

func (h *hashed) read(name string) *corev1.ConfigMap {
	h.t.Helper()
	m, err := h.client.CoreV1().ConfigMaps("default").Get(h.t.Context(), name, metav1.GetOptions{})
	require.NoError(h.t, err)
	return m
}

// isHashed reports whether the annotation is that of the content.
func (h *hashed) isHashed(m *corev1.ConfigMap) bool {
	content, err := json.Marshal([]any{m.Data, m.BinaryData})
	require.NoError(h.t, err)
	sum := sha256.Sum256(content)
	return m.Annotations["confighash.example.com/sha256"] == hex.EncodeToString(sum[:])
}

// awaitHash waits for the annotation, and returns the version that has it.
func (h *hashed) awaitHash(name string) string {
	h.t.Helper()
	var m *corev1.ConfigMap
	h.await("the hash of "+name, func() bool { m = h.read(name); return h.isHashed(m) })
	return m.ResourceVersion
}

func (h *hashed) await(what string, condition func() bool) {
	h.t.Helper()
	require.Eventually(h.t, condition, time.Minute, 20*time.Millisecond, "%s\n%s", what, &h.log)
}

// allow gives the user of the example some verbs, and returns as of which version
// and how to take them away.
func (h *hashed) allow(name string, verbs ...string) (since string, withdraw func()) {
	h.t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
	}
	_, err := h.client.RbacV1().Roles("default").Create(h.t.Context(), role, metav1.CreateOptions{})
	require.NoError(h.t, err)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "confighash"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	binding, err = h.client.RbacV1().RoleBindings("default").Create(h.t.Context(), binding, metav1.CreateOptions{})
	require.NoError(h.t, err)
	return binding.ResourceVersion, func() {
		require.NoError(h.t, h.client.RbacV1().RoleBindings("default").Delete(h.t.Context(), name, metav1.DeleteOptions{}))
		require.NoError(h.t, h.client.RbacV1().Roles("default").Delete(h.t.Context(), name, metav1.DeleteOptions{}))
	}
}

// TestConfighash runs the controller through a withdrawn right and a restart of the
// API server.
func TestConfighash(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	program := filepath.Join(t.TempDir(), "confighash")
	out, err := exec.Command("go", "build", "-o", program, "../confighash").CombinedOutput()
	require.NoError(t, err, "%s", out)
	c, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	connection, err := rest.HTTPClientFor(c.Config())
	require.NoError(t, err)
	t.Cleanup(connection.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(c.Config(), connection)
	require.NoError(t, err)
	h := &hashed{Cluster: c, t: t, client: client}
	h.allow("confighash-writer", "patch") // at all times
	_, withdraw := h.allow("confighash-reader", "list", "watch")
	h.write("a", "1")
	h.write("b", "1")

	run := exec.CommandContext(t.Context(), program, "-kubeconfig", h.kubeconfig(), "-namespace=default", "-max-staleness=3s")
	run.Stdout, run.Stderr = &h.log, &h.log
	require.NoError(t, run.Start())
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	defer func() { _ = run.Process.Kill() }()

	// Its own updates come back to it, and it leaves them alone.
	a, b := h.awaitHash("a"), h.awaitHash("b")
	h.write("b", "2")
	assert.NotEqual(t, b, h.awaitHash("b"))
	assert.Equal(t, a, h.read("a").ResourceVersion)

	// It may still write, and does not, since it may not read.
	withdraw()
	h.await("that it is not ready", func() bool { return strings.Contains(h.log.String(), `"Not ready"`) })
	h.write("a", "2")
	since, _ := h.allow("confighash-reader", "list", "watch")
	order, err := resourceversion.CompareResourceVersion(h.awaitHash("a"), since)
	require.NoError(t, err)
	assert.Positive(t, order, "all versions are of one etcd")
	assert.Regexp(t, `"Not ready" cause=.*Forbidden`, h.log.String())

	require.NoError(t, c.API.Restart(t.Context()))
	h.write("b", "3")
	h.awaitHash("b")

	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, <-ended, "%s", &h.log)
}

// kubeconfig writes the access of the example's user to a file.
func (h *hashed) kubeconfig() string {
	h.t.Helper()
	config, err := h.AddUser("confighash")
	require.NoError(h.t, err)
	file := filepath.Join(h.t.TempDir(), "config")
	require.NoError(h.t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
	}, file))
	return file
}
