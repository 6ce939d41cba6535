package safestore

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// ChangeType is what a [Change] says.
type ChangeType int

// What a subscriber is told, one generation of readiness after the other:
//
//	generation = Init { change } [ InitDone { change } ] Revoked
//	change     = Added | Updated | Deleted
//
// A generation that ends while its first set is handed out has no InitDone. The
// last one has no Revoked if the subscriber's own context ended, and neither has
// one that the subscriber itself has left. A subscriber that is slow may not hear of
// a generation that has come and gone; those that it hears of alternate all the
// same (C55). The changes between Init and InitDone are those since what this
// subscriber got last: all objects for the first generation, none at all if a proof
// was enough to be ready again.
const (
	// Init says that the store is ready, under Token.
	Init ChangeType = iota + 1
	// Added brings New, an object that the subscriber does not have.
	Added
	// Updated brings New in place of Old, the same object in an earlier state.
	Updated
	// Deleted says that Old does not exist any more, or that the subscription does
	// not cover it any more.
	Deleted
	// InitDone says that the subscriber has got all of the set. From here on what
	// it has follows the store.
	InitDone
	// Revoked says that Token is over, and why: Revocation. What the subscriber has
	// may be out of date, and no object is said to be deleted by this.
	Revoked
)

// String returns the name of the type.
func (t ChangeType) String() string {
	switch t {
	case Init:
		return "Init"
	case Added:
		return "Added"
	case Updated:
		return "Updated"
	case Deleted:
		return "Deleted"
	case InitDone:
		return "InitDone"
	case Revoked:
		return "Revoked"
	default:
		return "Invalid"
	}
}

// Change is what a subscriber is told: see [ChangeType]. The objects are shared
// and must not be changed.
type Change[T Object] struct {
	// Type is what the change says.
	Type ChangeType
	// Key is that of Added, Updated and Deleted; zero for the others.
	Key types.NamespacedName
	// Old is what this subscriber got last under the key, or an equal copy if all was
	// listed anew, for Updated and Deleted; New is what it gets now, for Added and
	// Updated; nil for the others. An object that has taken the name of another one,
	// as its UID says, is Added after that one was Deleted (C40).
	Old, New T
	// FinalStateUnknown is false for a Deleted if Old is known to be the last state
	// that the store had of the object before its deletion was watched. It is true if
	// it may have changed in between: the deletion was found by a list, or the
	// subscriber gets several events at once (C39).
	FinalStateUnknown bool
	// Token is the one that Init, Revoked and all between them are about. It was
	// ready when the change was handed out, save for Revoked.
	Token *token.Token
	// Revocation is why the token ended, for Revoked; nil for the others.
	Revocation *invalidation.Revocation
}

// String names the change, and shows nothing of what is in the objects.
func (c Change[T]) String() string {
	switch c.Type {
	case Added, Updated, Deleted:
		return fmt.Sprintf("%v %s", c.Type, c.Key)
	default:
		return c.Type.String()
	}
}
