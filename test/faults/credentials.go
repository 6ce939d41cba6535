package faults

import (
	"context"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// remembered is how long an API server does not look again at a good token.
const remembered = 11 * time.Second

// credentialsRotated is the server not knowing who asks (C19).
func credentialsRotated() Fault {
	var proxy *toxic
	return Fault{
		Name:    "credentials-rotated",
		Injects: "The service account whose token the caches use is deleted, and the connections are closed when the server has noticed. After the window there is a new token in the same file.",
		Right:   "Reads fail for Unauthorized as soon as the server says so, and the data is dropped. The new token is used without a restart.",
		Heals:   100 * time.Second, // client-go reads the file again after a minute
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Unauthorized}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) (err error) {
			if proxy, err = s.ThroughTCP(s.Cluster.API); err != nil {
				return err
			}
			file, err := os.CreateTemp("", "faults-token-")
			if err != nil {
				return err
			}
			s.Defer(func() error { return os.Remove(file.Name()) })
			if err := file.Close(); err != nil {
				return err
			}
			s.Config = rest.AnonymousClientConfig(s.Config)
			s.Config.BearerTokenFile = file.Name()
			everybody := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + s.Namespace}
			if err := s.grant(ctx, everybody); err != nil {
				return err
			}
			return s.issue(ctx, "old")
		},
		Inject: func(ctx context.Context, s *Stage) error {
			if err := s.Admin.CoreV1().ServiceAccounts(s.Namespace).Delete(ctx, "old", metav1.DeleteOptions{}); err != nil {
				return err
			}
			if err := Pass(ctx, remembered); err != nil {
				return err
			}
			if err := proxy.restart(); err != nil {
				return err
			}
			if err := s.Hold(ctx); err != nil {
				return err
			}
			return s.issue(ctx, "new")
		},
	}
}

// issue makes a service account and puts a token of it in the file.
func (s *Stage) issue(ctx context.Context, name string) error {
	accounts := s.Admin.CoreV1().ServiceAccounts(s.Namespace)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	issued, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return os.WriteFile(s.Config.BearerTokenFile, []byte(issued.Status.Token), 0o600)
}
