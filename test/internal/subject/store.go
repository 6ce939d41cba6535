package subject

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
)

// Store is a safestore.Store of objects of any type.
type Store interface {
	Run(ctx context.Context) error
	Token() *token.Token
	WaitReady(ctx context.Context) (*token.Token, error)
	Revoke(t *token.Token, cause error) bool
	OnReady(f func(*token.Token)) (remove func())
	OnRevoke(f func(*invalidation.Revocation)) (remove func())
	Status() safestore.Status

	// GetAny, ListAny, View and StaleView are Get, List, Snapshot and Stale. A
	// nil view is one that the store does not have.
	GetAny(ctx context.Context, key types.NamespacedName) (safestore.Object, error)
	ListAny(ctx context.Context) ([]safestore.Object, error)
	View() (*View, error)
	StaleView() *View
	// HandleAny subscribes to changes until ctx ends. Objects that a change does not
	// have are nil.
	HandleAny(ctx context.Context, f func(what safestore.ChangeType, was, is safestore.Object)) error
}

// View is a Snapshot of objects of any type.
type View struct {
	Token   *token.Token
	Version string
	Len     int
	all     func(func(safestore.Object))
}

// Contents returns what is in the view.
func (v *View) Contents() Contents {
	c := make(Contents, v.Len)
	v.all(func(obj safestore.Object) { c.Add(obj) })
	return c
}

type anyStore[T safestore.Object] struct{ *safestore.Store[T] }

func (s anyStore[T]) GetAny(ctx context.Context, key types.NamespacedName) (safestore.Object, error) {
	return s.Get(ctx, key)
}

func (s anyStore[T]) ListAny(ctx context.Context) ([]safestore.Object, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	objects := make([]safestore.Object, len(list))
	for i, obj := range list {
		objects[i] = obj
	}
	return objects, nil
}

func (s anyStore[T]) View() (*View, error) {
	snapshot, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	return view(snapshot), nil
}

func (s anyStore[T]) StaleView() *View {
	snapshot, _ := s.Stale()
	if snapshot == nil {
		return nil
	}
	return view(snapshot)
}

func (s anyStore[T]) HandleAny(ctx context.Context, f func(what safestore.ChangeType, was, is safestore.Object)) error {
	return s.Subscribe("follower").Handle(ctx, func(c safestore.Change[T]) error {
		f(c.Type, c.Old, c.New)
		return nil
	})
}

func view[T safestore.Object](snapshot *safestore.Snapshot[T]) *View {
	return &View{
		Token:   snapshot.Token(),
		Version: snapshot.ResourceVersion(),
		Len:     snapshot.Len(),
		all: func(f func(safestore.Object)) {
			for _, obj := range snapshot.All() {
				f(obj)
			}
		},
	}
}
