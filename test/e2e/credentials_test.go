package e2e

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// credentials are a bearer token that can be replaced while a client uses it.
type credentials struct{ token atomic.Pointer[string] }

// wrap is for rest.Config.Wrap.
func (c *credentials) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+*c.token.Load())
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// account makes a service account that may list and watch ConfigMaps, and returns
// a token of it.
func (e *env) account(t *testing.T, namespace, name string) string {
	t.Helper()
	_, err := e.admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	issued, err := e.admin.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return issued.Status.Token
}

// The account that the store's token is of is deleted, and another token is put in
// its place: by the program, with no restart of the store (C19). A store with a
// bound asks the server often, and learns of it sooner.
func TestCredentialsAreRotated(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.create(t, namespace, "a", "1")
	_, err := e.admin.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = e.admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + namespace}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: reader},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	old := e.account(t, namespace, "old")

	timeout := fast()
	timeout.Watch.WatchTimeout = 2 * time.Second
	subjects, held := map[string]*subject.Subject{}, &credentials{}
	held.token.Store(&old)
	for name, o := range map[string]safestore.Options{"WatchTimeout 2s": timeout, "MaxStaleness 3s": within(3 * time.Second)} {
		config := rest.AnonymousClientConfig(e.Config())
		config.Wrap(held.wrap)
		subjects[name] = subject.Typed(t, config, subject.Options{Store: o, Namespace: namespace}).Start(t)
	}
	faults := map[string]*fault{}
	for name, s := range subjects {
		s.AwaitReady(t)
		faults[name] = begin(s.Token())
	}
	require.NoError(t, e.admin.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "old", metav1.DeleteOptions{}))

	const remembered = 10 * time.Second // the server does not look at a good token again for so long
	for name, s := range subjects {
		r := faults[name].awaitRevoked(t, s, remembered+6*time.Second, invalidation.Unauthorized)
		assert.True(t, apierrors.IsUnauthorized(r), "%v", r)
		assert.Nil(t, s.StaleView(), "%s: what nobody is known to be allowed to read is dropped", name)
		_, err := s.View()
		assert.ErrorIs(t, err, invalidation.Unauthorized, name)
	}
	pass(t, 2*time.Second)
	for name, s := range subjects {
		failed := 0
		for _, r := range s.Requests.All() {
			if r.Status == http.StatusUnauthorized {
				failed++
			}
		}
		t.Logf("%s: %d refusals", name, failed)
		assert.Less(t, failed, 15, "%s: retries are paced (C16)", name)
	}

	e.update(t, namespace, "a", "2")
	fresh := e.account(t, namespace, "fresh")
	held.token.Store(&fresh)
	for name, s := range subjects {
		faults[name].over = time.Now()
		faults[name].awaitReady(t, s, 3*time.Second)
		assert.True(t, mustView(t, s).Contents().Equal(e.configMaps(t, namespace)), name)
	}
}
