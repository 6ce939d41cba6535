package faults

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// definitionDeleted is a resource that is not served, which is not one without objects (C25).
func definitionDeleted() Fault {
	return Fault{
		Name:    "crd-deleted",
		Injects: "The definition of the resource is deleted, with all objects, and created again after the window, with new ones.",
		Right:   "Reads fail for ResourceGone, and the data is dropped: not served is not the same as empty. Afterwards the store is ready again by itself.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.ResourceGone}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) error { return s.custom(ctx, stored, nil) },
		Inject: func(ctx context.Context, s *Stage) error {
			resume := s.Writer.Pause()
			defer resume()
			if err := s.definitions().Delete(ctx, s.definitionName(), metav1.DeleteOptions{}); err != nil {
				return err
			}
			err := until(ctx, "the definition is gone", func() bool {
				_, err := s.definitions().Get(ctx, s.definitionName(), metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
			if err != nil {
				return err
			}
			if err := s.Hold(ctx); err != nil {
				return err
			}
			return s.define(ctx, nil)
		},
	}
}

// versionSwitched is a version of a resource that is not served any more (C25).
func versionSwitched() Fault {
	return Fault{
		Name:    "crd-version-switched",
		Injects: "The version that the caches ask for is no longer served, and open watches end. Objects change in the other one. After the window both are served.",
		Right:   "Reads fail for ResourceGone, and the data is dropped.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.ResourceGone}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) error {
			if err := s.custom(ctx, older, nil); err != nil {
				return err
			}
			return s.ThroughGateway(s.Cluster.Config())
		},
		Inject: func(ctx context.Context, s *Stage) error {
			if err := s.serve(ctx, older, false); err != nil {
				return err
			}
			s.Gateway.End()
			if err := s.Hold(ctx); err != nil {
				return err
			}
			return s.serve(ctx, older, true)
		},
	}
}

// serve says whether a version is served, and waits until it is so.
func (s *Stage) serve(ctx context.Context, version string, served bool) error {
	err := until(ctx, "the definition is updated", func() bool {
		definition, err := s.definitions().Get(ctx, s.definitionName(), metav1.GetOptions{})
		if err != nil {
			return false
		}
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		if err != nil {
			return false
		}
		for _, v := range versions {
			if v := v.(map[string]any); v["name"] == version {
				v["served"] = served
			}
		}
		if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
			return false
		}
		_, err = s.definitions().Update(ctx, definition, metav1.UpdateOptions{})
		return err == nil
	})
	if err != nil {
		return err
	}
	return until(ctx, "the server does as the definition says", func() bool {
		_, err := s.Dynamic.Resource(s.Resource).Namespace(s.Namespace).List(ctx, metav1.ListOptions{})
		return (err == nil) == served
	})
}
