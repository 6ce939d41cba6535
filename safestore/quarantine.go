package safestore

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ErrPartial is what the error of a List or Count is, for errors.Is, if the store
// is lenient and the objects that match are not all there is: others exist that
// cannot be kept. The error itself is a [*PartialError].
var ErrPartial = errors.New("not all objects can be read")

// PartialError comes with the objects that could be read, and says what is
// missing (C24).
type PartialError struct {
	// Bad are the objects that are missing, in no particular order.
	Bad []*BadObjectError
}

// Error counts what is missing and gives an example.
func (e *PartialError) Error() string {
	return fmt.Sprintf("%v: %d cannot be kept, for example %v", ErrPartial, len(e.Bad), e.Bad[0])
}

// Is makes a PartialError an [ErrPartial].
func (e *PartialError) Is(target error) bool { return target == ErrPartial }

// BadObjectError says that an object exists and cannot be kept: it cannot be
// decoded, or a transform or an index function fails on it. In a store that is
// not lenient it is the cause of a revocation for [invalidation.BadData]; in one
// that is, it is what reading the object fails with. It is never a NotFound error,
// whatever the transform failed with.
type BadObjectError struct {
	// Key is the object's key.
	Key types.NamespacedName
	// Err is what it fails with. It names fields, and does not show what is in them.
	Err error

	kind string // its type, for people
	identity
}

// Error names the object and says what is wrong with it.
func (e *BadObjectError) Error() string { return fmt.Sprintf("%s %s: %v", e.kind, e.Key, e.Err) }

// Unwrap gives errors.Is and errors.As what it fails with.
func (e *BadObjectError) Unwrap() error { return quoted{e.Err, false} }

// partial is what an answer about a namespace, or about all if it is empty, comes
// with: nil if nothing of it is missing.
func (c indexedSet[T]) partial(namespace string) error {
	if c.bad.count == 0 {
		return nil
	}
	missing := c.bad.all()
	if namespace != "" {
		missing = c.bad.in(namespace)
	}
	if all := slices.Collect(missing); len(all) > 0 {
		return &PartialError{Bad: all}
	}
	return nil
}

// identity returns which object is there under a key, also if it cannot be read.
func (c indexedSet[T]) identity(key types.NamespacedName) (identity, bool) {
	if obj, ok := c.objects.get(key); ok {
		return identityOf(obj), true
	}
	if b, ok := c.bad.get(key); ok {
		return b.identity, true
	}
	return identity{}, false
}

// identities iterates over all that is there, also what cannot be read.
func (c indexedSet[T]) identities() iter.Seq2[types.NamespacedName, identity] {
	return func(yield func(types.NamespacedName, identity) bool) {
		for obj := range c.objects.all() {
			if !yield(Key(obj), identityOf(obj)) {
				return
			}
		}
		for b := range c.bad.all() {
			if !yield(b.Key, b.identity) {
				return
			}
		}
	}
}

// count returns how many objects there are, those that cannot be read among them.
func (c indexedSet[T]) count() int { return c.objects.count + c.bad.count }
