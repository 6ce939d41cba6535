package safestore

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// mutationVariable turns the mutation detector on for every store of a process.
const mutationVariable = "SAFESTORE_MUTATION_DETECTOR"

// WithMutationDetector finds objects that the program has changed although all
// readers share them (C51). It is for tests, where it costs a copy of each object
// and a comparison of all of them every second. An object is looked at once more
// after it was replaced or deleted, and all are before [Store.Run] returns.
//
// Each change is reported once, from one goroutine of the store, for which Run
// waits at its end. If report is nil, that goroutine panics instead, and nothing
// can recover from it.
//
// The environment variable SAFESTORE_MUTATION_DETECTOR, if true, does the same for
// every store of the process, and with it for a whole run of tests. They panic
// unless they have this option, which then says what to do. [New] fails if the
// variable is neither true nor false in terms of [strconv.ParseBool].
//
// A change that somebody reads at the same moment is also a data race: where Go's
// race detector is on, it may speak first, and says who it was.
//
// The copies are made by DeepCopyObject. A type that embeds another object and
// inherits its method gets copies of the wrong type: the store panics over the
// first one.
func WithMutationDetector[T Object](report func(*MutationError)) Option[T] {
	return func(s *Store[T]) error {
		s.mutations = newMutationDetector[T](s.name, report)
		return nil
	}
}

// mutationsByVariable is the option that the environment gives to each store.
func mutationsByVariable[T Object](s *Store[T]) error {
	value := os.Getenv(mutationVariable)
	if value == "" {
		return nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("environment variable %s is %q: want true or false", mutationVariable, value)
	}
	if on {
		return WithMutationDetector[T](nil)(s)
	}
	return nil
}

// MutationError says that an object of a store was changed in place, and where.
// It never says from or to what.
type MutationError struct {
	// Store is the store's name.
	Store string
	// Type is the type of the object, such as "v1.Pod", or the version and kind of
	// an unstructured one, such as "apps/v1.Deployment".
	Type string
	// Key is the key that the object had when it was kept.
	Key types.NamespacedName
	// Fields are the paths of the first ten fields that changed, by their names in
	// JSON: metadata.labels["app"], spec.containers[0].image. What JSON leaves out
	// goes by its name in Go.
	Fields []string
	// More is how many other fields changed.
	More int
}

// Error tells all of it in one line, and what to do about it.
func (e *MutationError) Error() string {
	fields := strings.Join(e.Fields, ", ")
	if e.More > 0 {
		fields += fmt.Sprintf(" and %d more", e.More)
	}
	return fmt.Sprintf("safestore: %s: %s %s was changed in place: %s; all readers share it: change a DeepCopy",
		e.Store, e.Type, e.Key, fields)
}
