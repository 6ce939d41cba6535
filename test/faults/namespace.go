package faults

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namespaceDeleted is an empty collection, which is a good answer (C21).
func namespaceDeleted() Fault {
	return Fault{
		Name:    "namespace-deleted",
		Injects: "The namespace is deleted with all that is in it, as the namespace controller does it, and created again after the window.",
		Right:   "The collection is empty, and the watch says so: reads go on, and nothing is listed again.",
		Expect:  Expect{Steady: true},
		Inject: func(ctx context.Context, s *Stage) error {
			resume := s.Writer.Pause()
			defer resume()
			namespaces := s.Admin.CoreV1().Namespaces()
			if err := namespaces.Delete(ctx, s.Namespace, metav1.DeleteOptions{}); err != nil {
				return err
			}
			if err := s.Admin.CoreV1().ConfigMaps(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				return err
			}
			err := until(ctx, "the namespace is gone", func() bool {
				terminating, err := namespaces.Get(ctx, s.Namespace, metav1.GetOptions{})
				if err != nil {
					return apierrors.IsNotFound(err)
				}
				terminating.Spec.Finalizers = nil
				_, _ = namespaces.Finalize(ctx, terminating, metav1.UpdateOptions{})
				return false
			})
			if err != nil {
				return err
			}
			if err := s.Hold(ctx); err != nil {
				return err
			}
			_, err = namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}, metav1.CreateOptions{})
			return err
		},
	}
}
