package system

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// store is SafeStore, with a controller over it and a consumer of its changes.
type store[T safestore.Object] struct {
	*safestore.Store[T]
	controller *controller.Controller
	consumer   *consumer
	namespace  string
}

func newSafeStore(setup *Setup, config *rest.Config, requests *counter, c *consumer) (underTest, error) {
	typed, untyped, err := clients(config)
	if err != nil {
		return nil, err
	}
	o := safestore.Options{
		MaxStaleness: setup.Bound,
		Watch:        watcher.Options{MaxBackoff: setup.MaxBackoff, Reconnect: requests.reconnect},
	}
	if setup.typed() {
		return newStore[*corev1.ConfigMap](watcher.ListWatch(typed.CoreV1().ConfigMaps(setup.Namespace)), setup, o, c)
	}
	return newStore[*unstructured.Unstructured](watcher.ListWatch(untyped.Resource(setup.Resource).Namespace(setup.Namespace)), setup, o, c)
}

func newStore[T safestore.Object](source watcher.Source, setup *Setup, o safestore.Options, c *consumer) (underTest, error) {
	s, err := safestore.New[T](source, o)
	if err != nil {
		return nil, err
	}
	s.OnReady(func(*token.Token) { c.handle() })
	s.OnRevoke(func(*invalidation.Revocation) { c.handle() })
	under := &store[T]{Store: s, consumer: c, namespace: setup.Namespace}
	under.controller, err = under.newController(c.act)
	return under, err
}

func (s *store[T]) run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = s.controller.Run(ctx) }) // it ends with ctx, or with the store
	all.Go(func() { s.follow(ctx) })
	return s.Run(ctx)
}

// follow consumes changes. A consumer that panics ends its subscription, and is given
// another one.
func (s *store[T]) follow(ctx context.Context) {
	handle := safestore.Isolate(func(safestore.Change[T]) error {
		s.consumer.handle()
		return nil
	})
	for ctx.Err() == nil {
		_ = s.Subscribe("consumer").Handle(ctx, handle) // logged by the store
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// stir implements underTest: hooks are told of generations, so one has to end.
func (s *store[T]) stir() { s.Revoke(s.Token(), nil) }

func (s *store[T]) read(sample *Sample) {
	if r := s.Status().Revocation; r != nil {
		sample.Revoked = string(r.Reason)
	}
	snapshot, err := s.Snapshot()
	if err != nil {
		sample.Generation = s.Token().Generation()
		sample.Error, sample.Reason = err.Error(), "Pending"
		var revocation *invalidation.Revocation
		if errors.As(err, &revocation) {
			sample.Reason = string(revocation.Reason)
		}
		if apierrors.IsNotFound(err) || !errors.Is(err, safestore.ErrNotReady) {
			sample.Reason = "" // it could be mistaken for an answer
		}
		return
	}
	s.show(snapshot, sample)
}

// show takes down what a snapshot has.
func (s *store[T]) show(snapshot *safestore.Snapshot[T], sample *Sample) {
	sample.Good, sample.Generation = true, snapshot.Token().Generation()
	sample.State.Objects = snapshot.Len()
	for name, value := range map[string]*string{truth.Counter: &sample.State.Counter, truth.Blinker: &sample.State.Blinker} {
		if obj, err := snapshot.Get(types.NamespacedName{Namespace: s.namespace, Name: name}); err == nil {
			*value = truth.Value(obj)
		}
	}
}
