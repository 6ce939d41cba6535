package safestore

import (
	"cmp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Snapshot is a complete, consistent view of all objects at one resource
// version. It never changes: what is read from one snapshot belongs together,
// however long it is kept and whatever happens to the store meanwhile. Whether
// it is still current is what its token says.
//
// The objects are shared with all other readers and must not be changed: see
// [Snapshot.GetDeepCopy] and [DeepCopy]. A Snapshot may be used from any goroutine.
// Keeping one keeps its objects in memory, those that newer snapshots have as well
// only once.
type Snapshot[T Object] struct {
	token    *token.Token
	set      indexedSet[T]
	indexes  indexes[T]
	version  string
	at       time.Time                // when the server last brought it forward
	proof    watcher.Proof            // newest one that it holds all there was
	complete bool                     // false before the first set, and when data was dropped
	dropped  *invalidation.Revocation // why data was dropped, nil if it was not
	resource schema.GroupResource
	scope    *scope
	only     *namespaceScope // which namespaces it has; nil for all

	// For change streams: steps counts one for each event and two for each list, so
	// that sets one step apart differ by one event.
	steps uint64
}

// Token returns the token under which the snapshot was current. It is Ready when
// the snapshot is handed out; work that depends on the snapshot still being true
// runs under the token's context.
func (s *Snapshot[T]) Token() *token.Token { return s.token }

// ResourceVersion returns the version that the snapshot reflects: the whole
// collection's, not one object's.
func (s *Snapshot[T]) ResourceVersion() string { return s.version }

// Proven returns the newest moment as of which the snapshot is known to hold
// everything that the server had committed. It is later for snapshots taken
// later, and does not move for one that is kept.
func (s *Snapshot[T]) Proven() time.Time { return s.proof.AsOf }

// Age returns how old the snapshot may be: the time since [Snapshot.Proven], on
// whichever of the monotonic and the wall clock it is longer.
func (s *Snapshot[T]) Age() time.Duration { return watcher.Age(s.proof.AsOf, time.Now()) }

// Len returns the number of objects that can be read.
func (s *Snapshot[T]) Len() int { return s.set.objects.count }

// Get returns the object of that key. If there is none the error is an API
// NotFound error (apierrors.IsNotFound), of a store with selectors if there is none
// that they match; if there is one that cannot be kept, in a lenient store, it is a
// [*BadObjectError]; if the store would not hold it, [ErrOutOfScope] is in it.
func (s *Snapshot[T]) Get(key types.NamespacedName) (T, error) {
	obj, ok := s.set.objects.get(key)
	if ok {
		return obj, nil
	}
	if bad, ok := s.set.bad.get(key); ok {
		return obj, bad
	}
	if err := s.covers(key); err != nil {
		return obj, err
	}
	return obj, s.notFound(key.Name)
}

// notFound says that there is no object of that name, as an API server would.
func (s *Snapshot[T]) notFound(name string) error {
	resource := s.resource
	for obj := range s.set.objects.all() { // whose kind is known, if they are of a dynamic client
		resource = cmp.Or(resourceOfKind(obj.GetObjectKind().GroupVersionKind()), resource)
		break
	}
	err := apierrors.NewNotFound(resource, name)
	if selected := s.scope.selected(); selected != "" {
		err.ErrStatus.Message += ", of those selected by " + selected
	}
	return err
}

// GetDeepCopy is Get with a copy that is the caller's to change.
func (s *Snapshot[T]) GetDeepCopy(key types.NamespacedName) (T, error) {
	return deepCopy(s.Get(key))
}

func deepCopy[T Object](obj T, err error) (T, error) {
	if err != nil {
		return obj, err
	}
	return obj.DeepCopyObject().(T), nil
}
