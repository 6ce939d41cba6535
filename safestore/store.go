package safestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Store is a local copy of a collection of Kubernetes objects that knows whether
// it can be trusted. Make one with [New] and start it with [Store.Run]; all its
// methods may be called from any goroutine.
//
//   - To read: Get and List wait until the store is ready; Snapshot does not
//     wait. What cannot be vouched for is an error, never an empty answer.
//   - To work for a while on what was read: take the snapshot's token and run
//     under its context, which ends when the store can no longer be trusted.
//   - To hear of readiness and its end: OnReady and OnRevoke; OnRevokeSync for who
//     must act before the next read.
//   - To follow what happens to the objects: Subscribe.
//   - To read old data knowingly: Stale.
type Store[T Object] struct {
	generations

	indexes    indexes[T]
	transforms []func(T) (T, error)
	limits     limits
	lenient    bool
	scope      *scope
	mutations  *mutationDetector[T] // nil if it is off

	watcher *watcher.Watcher

	// current is the newest snapshot, ready or not. Reading is one load of it;
	// only publish.go stores into it, in the goroutine of Run.
	current atomic.Pointer[Snapshot[T]]

	lastVoid atomic.Pointer[invalidation.Revocation] // newest one for which isVoid; stored under mu

	// unproven is the current token if a proof is all it needs to be ready: the
	// set is complete. Nil if it needs a new set. Under mu.
	unproven *token.Token
	damping  damping  // under mu
	unlogged []func() // lines to log when mu is released; under mu

	bound time.Duration // MaxStaleness

	subscriptions subscriptions[T]

	started chan struct{} // closed by Run
	running atomic.Bool
	log     atomic.Pointer[klog.Logger]
}

// New returns a store of the objects that source lists and watches, not yet
// running. T must be the type of those objects: *corev1.Pod for a typed client,
// *unstructured.Unstructured for a dynamic one, *metav1.PartialObjectMetadata
// for a metadata client. From a dynamic client it may also be a type that is named
// like their kind: each object is then decoded by the store, which can name the one
// that fails. A source with objects of another type can only be noticed at its
// first answer: the store is then never ready, for [invalidation.BadData].
//
// New fails if source is nil or an option makes no sense, naming it.
func New[T Object](source watcher.Source, opts Options, typed ...Option[T]) (*Store[T], error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("safestore: %w", err)
	}
	s := &Store[T]{
		limits:  limits{opts.MaxObjects, opts.MaxBytes},
		lenient: opts.Lenient,
		scope:   scopeOf(source),
		started: make(chan struct{}),
	}
	s.begin(cmp.Or(opts.Name, typeName[T]()))
	for i, option := range append([]Option[T]{mutationsByVariable[T]}, typed...) {
		if option == nil {
			return nil, fmt.Errorf("safestore: option %d is nil", i)
		}
		if err := option(s); err != nil {
			return nil, fmt.Errorf("safestore: %w", err)
		}
	}
	watch := opts.watch()
	s.bound = watch.MaxStaleness
	log := klog.Background()
	s.log.Store(&log)
	s.hooks.Panicked = func(value any) {
		s.logger().Error(nil, "Hook panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
	}
	s.barrier.Panicked = s.hooks.Panicked
	s.barrier.Lifted = func() { s.watcher.Prove() }
	s.current.Store(s.noSet())
	var err error
	s.watcher, err = watcher.New(source, &writer[T]{store: s, ordered: true}, watch)
	if err != nil {
		return nil, fmt.Errorf("safestore: %w", err)
	}
	return s, nil
}

// Run lists, watches and serves until ctx ends. Then the current token is
// revoked with [invalidation.Closed] and ctx's cause, readers that wait return,
// and Run returns nil when nothing of it is left running: that is how a store is
// stopped. A second call fails with [ErrRunTwice], also after the first has
// returned. It panics if ctx is nil.
//
// What it logs goes to the logger of ctx, klog.FromContext: one line for each
// transition, and one every half minute of a sync that takes longer than ten
// seconds; at verbosity 2, one for each attempt that failed.
//
// Run has the shape of an errgroup function, and of controller-runtime's
// manager.RunnableFunc.
func (s *Store[T]) Run(ctx context.Context) error {
	if ctx == nil {
		panic("safestore: Run with a nil context: use context.Background()")
	}
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("safestore: %s: %w", s.name, ErrRunTwice)
	}
	now := time.Now()
	s.since.Store(&now)
	log := klog.FromContext(ctx).WithValues("store", s.name)
	s.log.Store(&log)
	close(s.started)
	defer s.mutations.run()()

	// Waiting readers return at once, not when the watcher has been cleared away.
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		s.close(context.Cause(ctx))
	})
	defer func() {
		if !stop() {
			<-closed // and logged: nothing of the store goes on after Run
		}
	}()
	err := s.drive(klog.NewContext(ctx, log))
	s.close(err)
	s.waitForHooks(ctx)
	return nil
}

// errPanicked is why a store is closed whose Run ended by a panic, of a policy for
// example. A program that survives it must not go on reading.
var errPanicked = errors.New("Run ended by a panic")

// drive runs the watcher. If it panics the store is closed first.
func (s *Store[T]) drive(ctx context.Context) error {
	returned := false
	defer func() {
		if !returned {
			s.close(errPanicked)
		}
	}()
	err := s.watcher.Run(ctx)
	returned = true
	return err
}

func (s *Store[T]) logger() klog.Logger { return *s.log.Load() }
