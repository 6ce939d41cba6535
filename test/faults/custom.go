package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	customGroup = "faults.safestore.test"
	stored      = "v1"      // what etcd has
	older       = "v1beta1" // what is converted to
)

// custom sets up a custom resource to be cached, in a version of it, that both
// versions are served of. conversion is that of the definition, nil for none.
func (s *Stage) custom(ctx context.Context, version string, conversion map[string]any) error {
	plural := "things-" + s.Namespace
	s.Resource = schema.GroupVersionResource{Group: customGroup, Version: version, Resource: plural}
	s.ObjectKind = "Thing" + strings.ReplaceAll(s.Namespace, "-", "")
	s.Prefix = fmt.Sprintf("/registry/%s/%s/%s/", customGroup, plural, s.Namespace)
	s.Encode = s.encodeCustom
	if err := s.define(ctx, conversion); err != nil {
		return err
	}
	s.Defer(func() error {
		err := s.definitions().Delete(context.WithoutCancel(ctx), s.definitionName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return nil
}

// define creates the definition, and waits until the resource is served.
func (s *Stage) define(ctx context.Context, conversion map[string]any) error {
	version := func(name string) map[string]any {
		return map[string]any{
			"name": name, "served": true, "storage": name == stored,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		}
	}
	spec := map[string]any{
		"group":    customGroup,
		"scope":    "Namespaced",
		"names":    map[string]any{"plural": s.Resource.Resource, "kind": s.ObjectKind},
		"versions": []any{version(stored), version(older)},
	}
	if conversion != nil {
		spec["conversion"] = conversion
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": s.definitionName()},
		"spec":       spec,
	}}
	if _, err := s.definitions().Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, "the resource is served", func() bool {
		_, err := s.Dynamic.Resource(s.Resource).Namespace(s.Namespace).List(ctx, metav1.ListOptions{})
		return err == nil
	})
}

func (s *Stage) definitions() dynamic.ResourceInterface {
	return s.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

func (s *Stage) definitionName() string { return s.Resource.Resource + "." + customGroup }

// encodeCustom makes what etcd stores of a custom object.
func (s *Stage) encodeCustom(m metav1.ObjectMeta) ([]byte, error) {
	m.Namespace = s.Namespace
	return json.Marshal(map[string]any{"apiVersion": customGroup + "/" + stored, "kind": s.ObjectKind, "metadata": m})
}

// until waits for what comes about in its own time.
func until(ctx context.Context, what string, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, fmt.Errorf("not within 30 seconds: %s", what))
	defer cancel()
	for !condition() {
		if err := Pass(ctx, look); err != nil {
			return err
		}
	}
	return nil
}
