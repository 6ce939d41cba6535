package safestore

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Collection is what a [Store] and [Namespaces] have in common: readiness, typed
// reads, waits and changes. What the methods promise is said at those of Store. Only
// this package implements it.
type Collection[T Object] interface {
	Readiness

	// Get, GetDeepCopy and List read, waiting until that can be vouched for.
	Get(ctx context.Context, key types.NamespacedName) (T, error)
	GetDeepCopy(ctx context.Context, key types.NamespacedName) (T, error)
	List(ctx context.Context, opts ...ListOption) ([]T, error)
	// Snapshot returns a consistent view without waiting, WaitSnapshot after it, Stale
	// an old one with its age, and In the part that a snapshot of a group has.
	Snapshot() (*Snapshot[T], error)
	WaitSnapshot(ctx context.Context) (*Snapshot[T], error)
	Stale() (*Snapshot[T], time.Duration)
	In(joint *JointSnapshot) (*Snapshot[T], error)
	// Subscribe follows the changes.
	Subscribe(name string, opts ...ListOption) *Subscription[T]
	// Sync waits for all that was committed before the call, and the others for one
	// write.
	Sync(ctx context.Context) error
	WaitFor(ctx context.Context, obj metav1.Object) error
	WaitForVersion(ctx context.Context, version string) error
	WaitForDeletion(ctx context.Context, obj metav1.Object) error
}

var (
	_ Collection[Object] = (*Store[Object])(nil)
	_ Collection[Object] = (*Namespaces[Object])(nil)
)
