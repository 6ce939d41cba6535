package safestore

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
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
	name       string
	indexes    indexes[T]
	transforms []func(T) (T, error)
	limits     limits
	lenient    bool
	scope      *scope
	mutations  *mutationDetector[T] // nil if it is off

	tokens  *token.Source
	hooks   invalidation.Hooks
	barrier invalidation.Barrier
	watcher *watcher.Watcher

	// current is the newest snapshot, ready or not. Reading is one load of it;
	// only publish.go stores into it, in the goroutine of Run.
	current atomic.Pointer[Snapshot[T]]

	// mu is held while the token is moved, so that hooks hear of the moves in
	// their order. Readers do not take it.
	mu sync.Mutex

	last     atomic.Pointer[invalidation.Revocation] // newest one; stored under mu
	lastVoid atomic.Pointer[invalidation.Revocation] // newest one for which isVoid; stored under mu

	// unproven is the current token if a proof is all it needs to be ready: the
	// set is complete. Nil if it needs a new set. Under mu.
	unproven    *token.Token
	damping     damping     // under mu
	followers   followers   // under mu
	transitions transitions // under mu
	unlogged    []func()    // lines to log when mu is released; under mu

	bound    time.Duration // MaxStaleness
	progress broadcast     // tells of every change of current

	subscriptions subscriptions[T]

	started chan struct{} // closed by Run
	closed  chan struct{} // closed by close
	running atomic.Bool
	since   atomic.Pointer[time.Time] // when it was started, or last ready; nil before Run
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
		name:    cmp.Or(opts.Name, typeName[T]()),
		limits:  limits{opts.MaxObjects, opts.MaxBytes},
		lenient: opts.Lenient,
		scope:   scopeOf(source),
		tokens:  token.NewSource(context.Background()), // ended by close, with the reason
		started: make(chan struct{}),
		closed:  make(chan struct{}),
	}
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

// hookGrace is how long Run waits at its end for hooks to have heard of it.
const hookGrace = time.Second

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
	err := s.watcher.Run(klog.NewContext(ctx, log))
	s.close(err)
	hooks, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookGrace)
	defer cancel()
	_ = s.hooks.Wait(hooks) // a hook that is slower goes on by itself
	barrier, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.barrier.Remaining())
	defer cancel()
	_ = s.barrier.Wait(barrier)
	return nil
}

// Name returns the store's name: [Options].Name, or the type of its objects.
func (s *Store[T]) Name() string { return s.name }

// Token returns the current token: ready if the store is, else the one that is
// waited for. After the store is closed it is the last one, revoked.
func (s *Store[T]) Token() *token.Token { return s.tokens.Current() }

// OnReady registers f to be called with each token that becomes ready, beginning
// with the current one if it is ready already. The returned function removes f.
// What is promised about the order of calls, slow and panicking functions is
// said at [invalidation.Hooks]. OnReady panics if f is nil.
func (s *Store[T]) OnReady(f func(*token.Token)) (remove func()) { return s.hooks.OnReady(f) }

// OnRevoke registers f to be called each time a token that was ready is revoked.
// By then reads fail already, and contexts derived from the token are over. The
// rest is as with [Store.OnReady].
func (s *Store[T]) OnRevoke(f func(*invalidation.Revocation)) (remove func()) {
	return s.hooks.OnRevoke(f)
}

// OnRevokeSync registers f to be called each time a token that was ready is
// revoked, for those who must act before anybody reads the store again: no further
// token becomes ready, and so no read succeeds, until f has returned, or limit has
// passed since the revocation, when its context ends. By the time it is called reads
// fail already; a read by f itself waits, or fails.
//
// f is called in a goroutine of its own, one call at a time; several functions do
// not wait for each other. One that panics is reported and has returned. When the
// store is closed Run waits for f as well. While a function is registered, reads
// fail during a relist also with GaplessRelist. OnRevokeSync panics if f is nil or
// the limit is not positive. The returned function removes f.
func (s *Store[T]) OnRevokeSync(limit time.Duration, f func(context.Context, *invalidation.Revocation)) (remove func()) {
	return s.barrier.Add(limit, f)
}

func (s *Store[T]) logger() klog.Logger { return *s.log.Load() }
