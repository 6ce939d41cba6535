package safestore

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fullPod is a pod with one of each kind of field.
func fullPod() *corev1.Pod {
	size := apiresource.MustParse("1Gi")
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "A", Name: "a",
			Labels:            map[string]string{"app": "cart"},
			CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			OwnerReferences:   []metav1.OwnerReference{{Name: "owner", Controller: new(true)}},
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "me", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "cart:1", Args: []string{"-v"},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": apiresource.MustParse("1")}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)},
				}},
			}, {Name: "second"}},
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size},
			}}},
		},
	}
}

func TestChangedFieldsOfTypedObjects(t *testing.T) {
	main := func(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }
	size := func(p *corev1.Pod) *apiresource.Quantity { return p.Spec.Volumes[0].EmptyDir.SizeLimit }
	for _, tc := range []struct {
		want   string
		change func(*corev1.Pod)
	}{
		{"", func(p *corev1.Pod) {}},
		{"kind", func(p *corev1.Pod) { p.Kind = "Node" }},
		{"metadata.name status.phase", func(p *corev1.Pod) { p.Status.Phase, p.Name = "Failed", "b" }},

		{`metadata.labels["app"]`, func(p *corev1.Pod) { p.Labels["app"] = "shop" }},
		{`metadata.labels["app"]`, func(p *corev1.Pod) { delete(p.Labels, "app") }},
		{`metadata.labels["a/b"]`, func(p *corev1.Pod) { p.Labels["a/b"] = "" }},
		{`metadata.annotations["a"]`, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": ""} }},
		{"metadata.annotations", func(p *corev1.Pod) { p.Annotations = map[string]string{} }},

		{"spec.containers[0].image", func(p *corev1.Pod) { main(p).Image = "cart:2" }},
		{"spec.containers[0].args[0]", func(p *corev1.Pod) { main(p).Args[0] = "-q" }},
		{"spec.containers[0].args[1]", func(p *corev1.Pod) { main(p).Args = append(main(p).Args, "") }},
		{"spec.containers[1]", func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }},
		{"metadata.finalizers", func(p *corev1.Pod) { p.Finalizers = []string{} }},

		{"spec.priority", func(p *corev1.Pod) { p.Spec.Priority = new(int32(0)) }},
		{"spec.containers[0].livenessProbe", func(p *corev1.Pod) { main(p).LivenessProbe = nil }},
		{"metadata.ownerReferences[0].controller", func(p *corev1.Pod) { *p.OwnerReferences[0].Controller = false }},

		{"metadata.creationTimestamp", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(2, 0)) }},
		{"metadata.managedFields[0].fieldsV1", func(p *corev1.Pod) { p.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1("{}") }},
		{"spec.containers[0].livenessProbe.httpGet.port", func(p *corev1.Pod) { main(p).LivenessProbe.HTTPGet.Port.IntVal++ }},
		{"spec.volumes[0].emptyDir.sizeLimit", func(p *corev1.Pod) { size(p).Set(1) }},
		{"spec.volumes[0].emptyDir.sizeLimit", func(p *corev1.Pod) { size(p).Format = "" }},
		{`spec.containers[0].resources.limits["cpu"]`, func(p *corev1.Pod) { main(p).Resources.Limits["cpu"] = *size(p) }},
	} {
		was, is := fullPod(), fullPod()
		tc.change(is)
		paths, more := changedFields(was, is)
		assert.Equal(t, tc.want, strings.Join(paths, " "))
		assert.Zero(t, more)
		back, _ := changedFields(is, was)
		assert.Equal(t, paths, back)
	}
}

// To read a quantity can change how it is represented. That is no mutation, or
// there would be no reading.
func TestReadingChangesNoField(t *testing.T) {
	is := fullPod()
	was := is.DeepCopy()
	assert.Equal(t, "1Gi", is.Spec.Volumes[0].EmptyDir.SizeLimit.String())
	_ = is.Spec.Volumes[0].EmptyDir.SizeLimit.AsDec()
	_, err := json.Marshal(is)
	require.NoError(t, err)
	_, err = runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	require.NoError(t, err)
	require.NotEqual(t, was, is, "it has changed in memory")
	inMemory := is.DeepCopy()

	paths, _ := changedFields(was, is)
	assert.Empty(t, paths)
	assert.Equal(t, inMemory, is, "comparing changes nothing")
}

func TestChangedFieldsAreNotAllNamed(t *testing.T) {
	was, is := fullPod(), fullPod()
	is.Labels = map[string]string{}
	for n := range maxChangedFields + 1 {
		is.Labels[fmt.Sprintf("label-%02d", n)] = ""
	}
	paths, more := changedFields(was, is)
	assert.Len(t, paths, maxChangedFields)
	assert.Equal(t, `metadata.labels["app"]`, paths[0])
	assert.Equal(t, `metadata.labels["label-08"]`, paths[maxChangedFields-1])
	assert.Equal(t, 2, more)
}

func TestChangedFieldsOfMetadata(t *testing.T) {
	was := &metav1.PartialObjectMetadata{ObjectMeta: fullPod().ObjectMeta}
	is := was.DeepCopy()
	is.Labels["app"], is.APIVersion = "shop", "v2"
	paths, _ := changedFields(was, is)
	assert.Equal(t, []string{"apiVersion", `metadata.labels["app"]`}, paths)
}

func TestChangedFieldsOfUnstructuredObjects(t *testing.T) {
	object := func() *unstructured.Unstructured {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fullPod())
		require.NoError(t, err)
		return &unstructured.Unstructured{Object: content}
	}
	at := func(u *unstructured.Unstructured, path ...string) map[string]any {
		m := u.Object
		for _, name := range path {
			m = m[name].(map[string]any)
		}
		return m
	}
	main := func(u *unstructured.Unstructured) map[string]any {
		return at(u, "spec")["containers"].([]any)[0].(map[string]any)
	}
	for _, tc := range []struct {
		want   string
		change func(*unstructured.Unstructured)
	}{
		{"", func(u *unstructured.Unstructured) {}},
		{"metadata.generation", func(u *unstructured.Unstructured) { u.SetGeneration(7) }},
		{"metadata.labels.app", func(u *unstructured.Unstructured) { at(u, "metadata", "labels")["app"] = "shop" }},
		{`metadata.labels["a.b/c"]`, func(u *unstructured.Unstructured) { at(u, "metadata", "labels")["a.b/c"] = "" }},
		{"spec.containers[0].image", func(u *unstructured.Unstructured) { main(u)["image"] = "cart:2" }},
		{"spec.containers[0].image", func(u *unstructured.Unstructured) { main(u)["image"] = int64(1) }},
		{"spec.containers[0].args[1]", func(u *unstructured.Unstructured) { main(u)["args"] = append(main(u)["args"].([]any), "") }},
		{"spec", func(u *unstructured.Unstructured) { u.Object["spec"] = nil }},
		{"apiVersion kind metadata spec status", func(u *unstructured.Unstructured) { u.Object = nil }},
	} {
		was, is := object(), object()
		tc.change(is)
		paths, _ := changedFields(was, is)
		assert.Equal(t, tc.want, strings.Join(paths, " "))
	}
}

// odd is an object with what API types do not have.
type odd struct {
	Map    `json:",inline"`
	Hidden map[int]string `json:"-"`
	Odd    [2]any         `json:"odd"`
	Untold string
	State  *state
	notes  []string
	f      func()
}

type state struct{ next *state }

func (o *odd) DeepCopyObject() runtime.Object {
	c := *o
	c.Map = *o.Map.DeepCopy()
	c.Hidden = maps.Clone(o.Hidden)
	c.notes = append([]string(nil), o.notes...)
	return &c
}

// What JSON leaves out is compared as well.
func TestChangedFieldsThatAreNotSerialised(t *testing.T) {
	endless := &state{}
	endless.next = endless
	for want, change := range map[string]func(*odd){
		"":                func(o *odd) {},
		`data["a"]`:       func(o *odd) { o.Data = map[string]string{"a": ""} },
		"Hidden[7]":       func(o *odd) { o.Hidden[7] = "" },
		"odd[1]":          func(o *odd) { o.Odd[1] = "1" },
		"Untold":          func(o *odd) { o.Untold = "x" },
		"State":           func(o *odd) { o.State = nil },
		"notes[0]":        func(o *odd) { o.notes[0] = "x" },
		`binaryData["b"]`: func(o *odd) { o.BinaryData["b"][0]++ },
	} {
		is := &odd{
			Map:    Map{BinaryData: map[string][]byte{"b": {1, 2}}},
			Hidden: map[int]string{1: ""}, Odd: [2]any{1, 1}, State: endless, notes: []string{""}, f: func() {},
		}
		was := copyOf(is)
		change(is)
		paths, _ := changedFields(was, is)
		assert.Equal(t, want, strings.Join(paths, " "))
	}
}
