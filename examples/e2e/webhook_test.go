package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

// webhook is the program, running, on a cluster of its own.
type webhook struct {
	t        *testing.T
	admin    kubernetes.Interface
	process  *exec.Cmd
	log      bytes.Buffer
	ca       []byte
	url      string // of the webhook and the health checks
	debugURL string
	client   *http.Client
}

const webhookUser = "webhook"

// startWebhook starts a cluster and the program.
func startWebhook(t *testing.T) *webhook {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	c, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	config := c.Config()
	config.Dial = (&net.Dialer{}).DialContext // connections of this test's own
	connection, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(connection.CloseIdleConnections)
	w := &webhook{t: t}
	w.admin, err = kubernetes.NewForConfigAndClient(config, connection)
	require.NoError(t, err)
	_, err = w.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: webhookUser},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.grant()
	for name, frozen := range map[string]string{"open": "false", "closed": "true"} {
		_, err := w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"frozen": frozen}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}

	dir := t.TempDir()
	user, err := c.AddUser(webhookUser)
	require.NoError(t, err)
	file := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: user.Host, CertificateAuthorityData: user.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: user.CertData, ClientKeyData: user.KeyData}},
	}, file("kubeconfig")))
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file("tls.crt"), cert, 0o600))
	require.NoError(t, os.WriteFile(file("tls.key"), key, 0o600))
	w.ca = cert
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(cert))
	w.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}

	out, err := exec.Command("go", "build", "-o", file("webhook"), "../webhook").CombinedOutput()
	require.NoError(t, err, "%s", out)
	w.process = exec.CommandContext(t.Context(), file("webhook"), "-kubeconfig", file("kubeconfig"),
		"-address", "127.0.0.1:0", "-debug", "127.0.0.1:0", "-tls-cert", file("tls.crt"), "-tls-key", file("tls.key"),
		"-max-staleness", "5s", "-grace", "0s")
	w.process.Stderr = &w.log
	stdout, err := w.process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, w.process.Start())
	t.Cleanup(func() {
		if t.Failed() {
			_ = w.process.Process.Kill()
			_ = w.process.Wait()
			t.Logf("%s", &w.log)
		}
	})
	lines := bufio.NewScanner(stdout)
	for _, url := range []*string{&w.url, &w.debugURL} {
		require.True(t, lines.Scan(), "%s", &w.log)
		*url = strings.TrimPrefix(lines.Text(), "listening at ")
	}
	return w
}

// grant lets the program read namespaces.
func (w *webhook) grant() {
	w.t.Helper()
	_, err := w.admin.RbacV1().ClusterRoleBindings().Create(w.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: webhookUser},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: webhookUser}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: webhookUser},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// register makes the API server ask the program about ConfigMaps, those of its own
// namespaces left out.
func (w *webhook) register() {
	w.t.Helper()
	url, equivalent, none, fail, seconds := w.url+"/validate", admissionregistrationv1.Equivalent, admissionregistrationv1.SideEffectClassNone,
		admissionregistrationv1.Fail, int32(5)
	_, err := w.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(w.t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "frozen"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name:         "frozen.example.com",
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: w.ca},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}},
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "frozen", Operator: metav1.LabelSelectorOpExists},
				}},
				FailurePolicy: &fail, MatchPolicy: &equivalent, SideEffects: &none, TimeoutSeconds: &seconds,
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// failurePolicy changes it.
func (w *webhook) failurePolicy(policy admissionregistrationv1.FailurePolicyType) {
	w.t.Helper()
	_, err := w.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(w.t.Context(), "frozen", "application/json-patch+json",
		fmt.Appendf(nil, `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":%q}]`, policy), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// create makes a ConfigMap.
func (w *webhook) create(namespace string) error {
	_, err := w.admin.CoreV1().ConfigMaps(namespace).Create(w.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	return err
}

// get returns a page of the program.
func (w *webhook) get(url string) (code int, body string) {
	w.t.Helper()
	answer, err := w.client.Get(url)
	require.NoError(w.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	return answer.StatusCode, string(text)
}

// becomes waits until /readyz is answered with that code.
func (w *webhook) becomes(code int) (body string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		var got int
		got, body = w.get(w.url + "/readyz?verbose")
		return got == code
	}, time.Minute, 50*time.Millisecond, "/readyz does not become %d", code)
	return body
}

// refuses waits until the API server has heard of what was configured, and says no
// with the program's words.
func (w *webhook) refuses() {
	w.t.Helper()
	var err error
	require.Eventually(w.t, func() bool { err = w.create("closed"); return apierrors.IsForbidden(err) }, time.Minute, 50*time.Millisecond)
	assert.EqualError(w.t, err, `admission webhook "frozen.example.com" denied the request: namespace closed is frozen`)
}

func TestWebhookFollowsItsStore(t *testing.T) {
	w := startWebhook(t)
	assert.Equal(t, "[+]namespaces ok\nreadyz check passed\n", w.becomes(200))
	w.register()
	w.refuses()
	require.NoError(t, w.create("open"))

	// What it may not read it does not decide, and says so; it does not ask to be killed.
	require.NoError(t, w.admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), webhookUser, metav1.DeleteOptions{}))
	assert.Equal(t, "[-]namespaces failed: reason withheld\nreadyz check failed\n", w.becomes(500))
	_, why := w.get(w.url + "/readyz/namespaces")
	assert.Regexp(t, `^internal server error: namespaces is not ready for [\d.ms]+: Forbidden\n$`, why)
	code, alive := w.get(w.url + "/livez?verbose")
	assert.Equal(t, 200, code)
	assert.Equal(t, "[+]namespaces ok\nlivez check passed\n", alive)
	for _, namespace := range []string{"open", "closed"} {
		err := w.create(namespace)
		var status *apierrors.StatusError
		require.True(t, errors.As(err, &status), "%v", err)
		assert.ErrorContains(t, err, `failed calling webhook "frozen.example.com"`)
	}
	_, page := w.get(w.debugURL + "/debug/safestore")
	assert.Contains(t, page, "✕ not ready: Forbidden")
	assert.Contains(t, page, "namespaces is forbidden: User &#34;webhook&#34; cannot")

	w.failurePolicy(admissionregistrationv1.Ignore)
	require.Eventually(t, func() bool { return w.create("closed") == nil }, time.Minute, 50*time.Millisecond)
	w.failurePolicy(admissionregistrationv1.Fail)

	w.grant()
	w.becomes(200)
	w.refuses()
	require.NoError(t, w.create("open"))

	require.NoError(t, w.process.Process.Signal(os.Interrupt))
	require.NoError(t, w.process.Wait(), "%s", &w.log)
}
