package safestore

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

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
