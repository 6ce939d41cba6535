package faults

import (
	"context"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// reader is the name of the role and of its binding.
const reader = "faults-reader"

// rightWithdrawn is the server saying no while the cache runs (C18, C21).
func rightWithdrawn() Fault {
	var proxy *toxic
	return Fault{
		Name:    "right-withdrawn",
		Injects: "The RBAC binding is deleted, the connections are closed, as they are some time or other, and the right is given again after the window.",
		Right:   "Reads fail for Forbidden, with the server's words, as soon as the server says so, and the data is dropped.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Forbidden}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) (err error) {
			if proxy, err = s.ThroughTCP(s.Cluster.API); err != nil {
				return err
			}
			user := "reader-of-" + s.Namespace
			config, err := s.Cluster.AddUser(user)
			if err != nil {
				return err
			}
			config.Host, s.Config = s.Config.Host, config
			return s.grant(ctx, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
		},
		Inject: func(ctx context.Context, s *Stage) error {
			bindings := s.Admin.RbacV1().RoleBindings(s.Namespace)
			binding, err := bindings.Get(ctx, reader, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := bindings.Delete(ctx, reader, metav1.DeleteOptions{}); err != nil {
				return err
			}
			// The server hears of it by a watch of its own.
			if err := Pass(ctx, time.Second); err != nil {
				return err
			}
			if err := proxy.restart(); err != nil {
				return err
			}
			if err := s.Hold(ctx); err != nil {
				return err
			}
			binding.ResourceVersion, binding.UID = "", ""
			_, err = bindings.Create(ctx, binding, metav1.CreateOptions{})
			return err
		},
	}
}

// grant lets somebody list and watch ConfigMaps in the namespace.
func (s *Stage) grant(ctx context.Context, who rbacv1.Subject) error {
	_, err := s.Admin.RbacV1().Roles(s.Namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = s.Admin.RbacV1().RoleBindings(s.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		Subjects:   []rbacv1.Subject{who},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: reader},
	}, metav1.CreateOptions{})
	return err
}
