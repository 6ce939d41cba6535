package subject

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ValueAnnotation is where tests put what they write into an object, where every
// kind of client sees it.
const ValueAnnotation = "safestore.test/value"

// State is what can be told of an object through any client.
type State struct {
	UID     types.UID
	Version string
	Value   string
}

// StateOf returns the state of an object.
func StateOf(obj metav1.Object) State {
	return State{UID: obj.GetUID(), Version: obj.GetResourceVersion(), Value: obj.GetAnnotations()[ValueAnnotation]}
}

// Contents is what a store or a server holds.
type Contents map[types.NamespacedName]State

// Add puts the state of an object in.
func (c Contents) Add(obj metav1.Object) {
	c[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = StateOf(obj)
}

// Equal reports whether both hold the same objects in the same states.
func (c Contents) Equal(other Contents) bool { return maps.Equal(c, other) }

// Names returns the names of the objects, sorted.
func (c Contents) Names() []string {
	names := make([]string, 0, len(c))
	for key := range c {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return names
}
