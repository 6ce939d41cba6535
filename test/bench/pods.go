package bench

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	perNamespace = 100 // pods in each namespace
	perNode      = 100 // pods on each node
	apps         = 100 // values of the label app
	appLabel     = "app"
)

// makePods returns pods as a deployment makes them, with names in random order.
func makePods(size int) []*corev1.Pod {
	r := rand.New(rand.NewPCG(1, 2))
	nodes := max(size/perNode, 1)
	pods := make([]*corev1.Pod, size)
	for i := range pods {
		app := fmt.Sprintf("app-%02d", i%apps)
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       fmt.Sprintf("team-%04d", i/perNamespace),
				Name:            fmt.Sprintf("%s-%08x-%05x", app, r.Uint32(), i),
				UID:             types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", r.Uint32(), i)),
				ResourceVersion: strconv.Itoa(i + 1),
				Labels:          map[string]string{appLabel: app, "pod-template-hash": fmt.Sprintf("%08x", r.Uint32())},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app}},
			},
			Spec: corev1.PodSpec{
				NodeName: fmt.Sprintf("node-%04d", r.IntN(nodes)),
				Containers: []corev1.Container{{
					Name:  "main",
					Image: "registry.example/" + app + ":v1",
					Env:   []corev1.EnvVar{{Name: "MODE", Value: "production"}},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
					}},
				}},
			},
			Status: corev1.PodStatus{
				Phase:      corev1.PodRunning,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				PodIP:      fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255),
			},
		}
	}
	return pods
}

// key is the key of one pod, in the form that each contender asks with.
type key struct {
	name  types.NamespacedName
	path  string // namespace/name, as client-go writes it
	bytes []byte // of path
}

// keysOf returns the keys of pods in another order and other memory: who asks for
// an object rarely has the very string that the cache holds.
func keysOf(pods []*corev1.Pod) []key {
	keys := make([]key, len(pods))
	for i, j := range rand.New(rand.NewPCG(3, 4)).Perm(len(pods)) {
		keys[i] = newKey(strings.Clone(pods[j].Namespace), strings.Clone(pods[j].Name))
	}
	return keys
}

func newKey(namespace, name string) key {
	path := namespace + "/" + name
	return key{name: types.NamespacedName{Namespace: namespace, Name: name}, path: path, bytes: []byte(path)}
}

// pathOf returns the key of a pod as client-go writes it, in memory of its own.
func pathOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// changed returns the pod in a later state.
func changed(pod *corev1.Pod, version uint64) *corev1.Pod {
	next := *pod
	next.ResourceVersion = strconv.FormatUint(version, 10)
	return &next
}

// The index of the stores and caches that have one.
const nodeIndex = "spec.nodeName"

func nodeOf(pod *corev1.Pod) []string { return []string{pod.Spec.NodeName} }

// The second index of those that have two.
const imageIndex = "image"

func imageOf(pod *corev1.Pod) []string { return []string{pod.Spec.Containers[0].Image} }
