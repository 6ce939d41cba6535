package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

const reader = "reader" // name of role, binding and user

// grant lets the user list and watch ConfigMaps in a namespace.
func (e *env) grant(t *testing.T, namespace string) {
	t.Helper()
	_, err := e.admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: reader}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: reader},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// withdraw takes the right away again.
func (e *env) withdraw(t *testing.T, namespace string) {
	t.Helper()
	require.NoError(t, e.admin.RbacV1().RoleBindings(namespace).Delete(t.Context(), reader, metav1.DeleteOptions{}))
}

// forUser returns stores that run with the rights of a user who has none yet.
func (e *env) forUser(t *testing.T, namespace string, o safestore.Options) []*subject.Subject {
	t.Helper()
	return subjectsFor(t, e.user(t, namespace), namespace, o)
}

// user returns the access of a user who has no rights before grant.
func (e *env) user(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	_, err := e.admin.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := e.AddUser(reader)
	require.NoError(t, err)
	return config
}

// assertRefused checks that everything that can fail says what the server said.
func assertRefused(t *testing.T, s *subject.Subject) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, fromView := s.View()
	_, fromWait := s.WaitReady(ctx)
	_, fromGet := s.GetAny(ctx, types.NamespacedName{Namespace: s.Namespace, Name: "untouched"})
	list, fromList := s.ListAny(ctx)
	assert.Nil(t, list)
	for from, err := range map[string]error{"View": fromView, "WaitReady": fromWait, "Get": fromGet, "List": fromList} {
		require.ErrorIs(t, err, safestore.ErrNotReady, from)
		assert.ErrorIs(t, err, invalidation.Forbidden, from)
		assert.False(t, apierrors.IsNotFound(err), "%s: %v", from, err)
		var status *apierrors.StatusError
		require.True(t, errors.As(err, &status), "%s: %v", from, err)
		assert.True(t, apierrors.IsForbidden(status), "%s: %v", from, err)
		assert.Contains(t, status.Error(), `User "reader" cannot`, from)
		assert.Contains(t, err.Error(), status.Error(), from)
	}
	assert.Nil(t, s.StaleView(), "what may not be read is not kept")
	assert.Zero(t, s.Status().Objects)
}

// assertBackoff checks the times between refused requests against the options:
// each pause is at least half of twice the one before.
func assertBackoff(t *testing.T, refused []requests.Request, o safestore.Options) {
	t.Helper()
	pause := o.Watch.MinBackoff
	for i := 1; i < len(refused); i++ {
		assert.GreaterOrEqual(t, refused[i].Began.Sub(refused[i-1].Began), pause/2, "before request %d: %v", i, refused)
		pause = min(2*pause, o.Watch.MaxBackoff)
	}
}

// refusals returns the requests that were answered with 403, and fails if any
// other was made among them.
func refusals(t *testing.T, all []requests.Request) []requests.Request {
	t.Helper()
	var refused []requests.Request
	for _, r := range requests.Main(all) {
		switch {
		case r.Status == 403:
			refused = append(refused, r)
		case len(refused) > 0 && r.Status != 0:
			assert.Fail(t, "answered", "%s after a refusal", r)
		}
	}
	return refused
}

// C16, C18, C21.
func TestTheRightIsWithdrawnAndGrantedAgain(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.seed(t, namespace)
	o := fast()
	o.Watch.WatchTimeout = time.Second
	subjects := e.forUser(t, namespace, o)
	e.grant(t, namespace)
	ready := startAll(t, subjects)
	for _, s := range subjects {
		s.AwaitContents(t, e.configMaps(t, namespace))
		s.AwaitRequests(t, "a resumed watch", func(all []requests.Request) bool { return requests.Count(all, requests.Watch) >= 2 })
		assert.Same(t, ready[s], s.Token(), "a watch that ends in time and resumes revokes nothing")
	}

	e.withdraw(t, namespace)
	const enough = 6
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		revocation := s.AwaitRevoked(t, ready[s])
		assert.Equal(t, invalidation.Forbidden, revocation.Reason)
		// Whichever was asked first: the watch that is resumed, or a proof.
		assert.Regexp(t, `User "reader" cannot (watch|list) resource "configmaps"`, revocation.Error())
		assertRefused(t, s)
		all := s.AwaitRequests(t, "refusals", func(all []requests.Request) bool {
			n := 0
			for _, r := range requests.Main(all) {
				if r.Status == 403 {
					n++
				}
			}
			return n >= enough
		})
		assertRefused(t, s)
		assertBackoff(t, refusals(t, all), o)
		assert.Equal(t, ready[s].Generation()+1, s.Token().Generation(), "the same refusal again revokes nothing more")
		assert.GreaterOrEqual(t, s.Status().Watch.Failures, enough-1)
	})

	e.change(t, namespace, "1")
	e.grant(t, namespace)
	for _, s := range subjects {
		view := s.AwaitContents(t, e.configMaps(t, namespace))
		assert.Equal(t, ready[s].Generation()+1, view.Token.Generation())
		assert.Empty(t, s.Status().Watch.WatchListRefused, "a refusal is no reason to give WatchList up")
	}
}

// C18: the reason is there with the server's first answer, and the store becomes
// ready by itself when the right is granted.
func TestNoRightAtStart(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.seed(t, namespace)
	o := fast()
	o.Watch.MinBackoff = 10 * time.Second // so that there is one answer only
	o.Watch.MaxBackoff = o.Watch.MinBackoff
	for _, s := range e.forUser(t, namespace, o) {
		s.Start(t)
		eventually(t, "the reason", func() bool { return s.Token().Generation() == 2 })
		assertRefused(t, s)
		assert.Len(t, requests.Main(s.Requests.All()), 1)
	}
	o = fast()
	config, err := e.AddUser(reader)
	require.NoError(t, err)
	subjects := subjectsFor(t, config, namespace, o)
	for _, s := range subjects {
		s.Start(t)
		s.AwaitRequests(t, "a refusal", func(all []requests.Request) bool { return len(all) > 1 })
		assertRefused(t, s)
	}
	e.grant(t, namespace)
	for _, s := range subjects {
		s.AwaitContents(t, e.configMaps(t, namespace))
		assert.Equal(t, token.Ready, s.Token().State())
	}
}
