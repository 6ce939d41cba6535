package truth

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// The names of the two objects whose values are part of a state.
const (
	Counter = "counter"
	Blinker = "blinker"
)

// State is what a collection, or a copy of one, holds.
type State struct {
	Objects int    `json:"objects"`           // how many there are
	Counter string `json:"counter,omitempty"` // the value of that object; empty if there is none
	Blinker string `json:"blinker,omitempty"` // likewise
}

// String is for people.
func (s State) String() string {
	return fmt.Sprintf("%d objects, counter %q, blinker %q", s.Objects, s.Counter, s.Blinker)
}

// Add takes an object into account.
func (s *State) Add(obj metav1.Object) {
	s.Objects++
	s.set(obj.GetName(), Value(obj))
}

// Value returns the value of an object.
func Value(obj metav1.Object) string { return obj.GetAnnotations()[subject.ValueAnnotation] }

func (s *State) set(name, value string) {
	switch name {
	case Counter:
		s.Counter = value
	case Blinker:
		s.Blinker = value
	}
}

// stored returns the value of an object as it is stored in etcd.
func stored(data []byte) (string, error) {
	if len(data) == 0 {
		return "", nil
	}
	if data[0] == '{' {
		var obj metav1.PartialObjectMetadata
		err := json.Unmarshal(data, &obj)
		return Value(&obj), err
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return "", err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", err
	}
	return Value(m), nil
}
