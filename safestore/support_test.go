package safestore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// What the tests of this package share: rig drives the writing side of a store
// by hand, in the watcher's place; scripted is a source for stores that run.

type (
	Map   = corev1.ConfigMap // what the stores of these tests hold
	store = Store[*Map]
)

// rig is a started store whose writer belongs to the test. It reads as a store
// and writes as a watcher.Sink.
type rig struct {
	*store
	*writer[*Map]
}

func newRig(t testing.TB) *rig {
	t.Helper()
	s, err := New[*Map](newScripted(), Options{})
	require.NoError(t, err)
	var silent klog.Logger
	s.log.Store(&silent)
	now := time.Now()
	s.since.Store(&now)
	s.running.Store(true)
	close(s.started)
	return &rig{store: s, writer: &writer[*Map]{store: s, ordered: true}}
}

// Publish publishes what was built, as what is its own proof.
func (r *rig) Publish(version string, proof watcher.Proof) (wait time.Duration) {
	return r.writer.Publish(version, proof, true)
}

// Apply applies an event of a watch that has brought everything up to the version of the
// current snapshot.
func (r *rig) Apply(event watch.EventType, obj runtime.Object) error {
	return r.writer.Apply(event, obj, r.current.Load().version)
}

// put publishes what was built. Damping is not what these tests are about: each
// publication is as good as the first.
func (r *rig) put(t testing.TB, version string) {
	t.Helper()
	r.undamp()
	if wait := r.Publish(version, watcher.Proof{AsOf: time.Now()}); wait != 0 {
		t.Errorf("Publish wants to wait %v", wait)
	}
}

func (r *rig) undamp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.damping = damping{}
}

// publishSet lists and publishes objects, as a watcher does.
func (r *rig) publishSet(t testing.TB, version string, objects ...*Map) {
	t.Helper()
	r.Begin()
	for _, obj := range objects {
		require.NoError(t, r.Build(watch.Added, obj))
	}
	r.put(t, version)
}

// revokeFor ends the current token as the default policy wants it for a sighting.
func (r *rig) revokeFor(seen invalidation.Sighting, cause error) {
	r.writer.Revoke(invalidation.Default(invalidation.Observation{Seen: seen, Err: cause}), cause)
}

func mapOf(namespace, name, version string) *Map {
	return &Map{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, ResourceVersion: version, UID: types.UID("uid of " + namespace + "/" + name),
	}}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// contents is a set of objects in one line, in order.
func contents(s *Snapshot[*Map]) string {
	if s == nil {
		return "nothing"
	}
	var lines []string
	for k, obj := range s.All() {
		lines = append(lines, fmt.Sprintf("%s=%s@%s", k, obj.UID, obj.ResourceVersion))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// over is a context that ended before it was used.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// scripted is a source that does what a test says. It knows no WatchList and is
// no fake: versions count.
type scripted struct {
	mu     sync.Mutex
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	events chan watch.Event // of the default watch
	lists  int
}

// newScripted returns a source of an empty collection that never changes.
func newScripted() *scripted { return sourceOf(mapList("1")) }

// sourceOf returns a source that answers each LIST with one list.
func sourceOf(list runtime.Object) *scripted {
	s := &scripted{events: make(chan watch.Event)}
	s.list = func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil }
	s.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return watch.NewProxyWatcher(s.events), nil
	}
	return s
}

// failing returns a source whose LIST fails.
func failing(err error) *scripted {
	s := newScripted()
	s.list = func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, err }
	return s
}

func mapList(version string, objects ...*Map) *corev1.ConfigMapList {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, obj := range objects {
		list.Items = append(list.Items, *obj)
	}
	return list
}

func (s *scripted) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	s.lists++
	list := s.list
	s.mu.Unlock()
	return list(ctx, opts)
}

func (s *scripted) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	watch := s.watch
	s.mu.Unlock()
	return watch(ctx, opts)
}

func (s *scripted) IsWatchListSemanticsUnSupported() bool { return true }

// answer changes what a LIST is answered.
func (s *scripted) answer(list runtime.Object, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, err }
}

func (s *scripted) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// start runs a store until the returned function is called, which ends it with
// that cause and waits for Run.
func start[T Object](t testing.TB, s *Store[T]) (stop func(cause error)) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(klog.NewContext(context.Background(), klog.Logger{}))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	stop = func(cause error) {
		once.Do(func() {
			cancel(cause)
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(func() { stop(nil) })
	return stop
}

// newStore returns a store of a source, which must be acceptable.
func newStore(t testing.TB, source watcher.Source) *store {
	t.Helper()
	s, err := New[*Map](source, Options{})
	require.NoError(t, err)
	return s
}

// readyToken waits for the store to be ready.
func readyToken(t testing.TB, s *store) *token.Token {
	t.Helper()
	tok, err := s.WaitReady(context.Background())
	require.NoError(t, err)
	return tok
}

// logSink hands each message of a store's log to a function, in the goroutine
// that logs it: at that place of the store's code, the test decides how long it
// stays there.
type logSink func(message string)

func (logSink) Init(klog.RuntimeInfo)              {}
func (logSink) Enabled(int) bool                   { return true }
func (f logSink) Info(_ int, msg string, _ ...any) { f(msg) }
func (f logSink) Error(_ error, msg string, _ ...any) {
	f(msg)
}
func (f logSink) WithValues(...any) klog.LogSink { return f }
func (f logSink) WithName(string) klog.LogSink   { return f }

// hearLog lets f hear the rig's log.
func (r *rig) hearLog(f func(message string)) {
	log := klog.New(logSink(f))
	r.log.Store(&log)
}
