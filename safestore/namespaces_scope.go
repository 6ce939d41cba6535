package safestore

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// ErrOutOfScope is found in the error of a read that asks for what the store would
// not hold if it existed, as a key in another namespace. The error says what the
// scope is. It is neither a NotFound error nor [ErrNotReady]: the store does not
// know, and waiting does not help.
var ErrOutOfScope = errors.New("out of the store's scope")

// namespaceScope is which namespaces a snapshot is of. What is in others is not
// known, and so not absent. Nil is all there are.
type namespaceScope struct {
	name       string
	namespaces map[string]bool // true for those that the snapshot has, false if they were not ready
}

// covers returns why nothing is known of a key, or of a namespace if the key has no
// name. The zero key is all that there is.
func (s *namespaceScope) covers(key types.NamespacedName) error {
	if s == nil || key == (types.NamespacedName{}) {
		return nil
	}
	has, known := s.namespaces[key.Namespace]
	switch {
	case key.Namespace == "":
		return fmt.Errorf("safestore: %s: key %q without namespace is %w: it is in none of its namespaces",
			s.name, key.Name, ErrOutOfScope)
	case !known:
		return fmt.Errorf("safestore: %s: namespace %q is %w: it is none of its namespaces",
			s.name, key.Namespace, ErrOutOfScope)
	case !has:
		return fmt.Errorf("safestore: %s: namespace %q is not in the snapshot: %w",
			s.name, key.Namespace, ErrNotReady)
	}
	return nil
}
