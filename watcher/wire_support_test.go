package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// record is a Sink that holds a set, as versions by name, and writes down what
// it is told.
type record struct {
	mu     sync.Mutex
	set    map[string]string
	build  map[string]string
	told   []string
	slow   time.Duration                  // how long Apply takes
	refuse func(obj runtime.Object) error // what Build and Apply say, nil if nothing
}

func (r *record) tell(format string, args ...any) {
	r.told = append(r.told, fmt.Sprintf(format, args...))
}

func (r *record) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.build = map[string]string{}
	r.tell("begin")
}

func (r *record) Build(event watch.EventType, obj runtime.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.change(r.build, event, obj)
}

func (r *record) change(set map[string]string, event watch.EventType, obj runtime.Object) error {
	if r.refuse != nil {
		if err := r.refuse(obj); err != nil {
			return err
		}
	}
	m := obj.(metav1.Object)
	if m.GetName() == "" {
		return errors.New("it has no name")
	}
	if event == watch.Deleted {
		delete(set, m.GetName())
	} else {
		set[m.GetName()] = m.GetResourceVersion()
	}
	return nil
}

func (r *record) Discard() {}

func (r *record) Publish(version string, _ watcher.Proof, _ bool) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set, r.build = r.build, nil
	r.tell("publish %s", version)
	return 0
}

func (r *record) Prove(watcher.Proof) time.Duration { return 0 }

func (r *record) Remember(bool) {}

func (r *record) Reflects(event watch.EventType, obj runtime.Object) bool {
	m := obj.(metav1.Object)
	version, ok := r.set[m.GetName()]
	if event == watch.Deleted {
		return !ok
	}
	return version == m.GetResourceVersion()
}

func (r *record) Check(list watcher.Sample, _ string) watcher.Agreement {
	if list.Object == nil || r.set[list.Object.GetName()] == list.Object.GetResourceVersion() {
		return watcher.Agrees
	}
	return watcher.Awaits
}

// Audits agree: they have their tests elsewhere.

func (r *record) BeginAudit()                                       {}
func (r *record) Audit(runtime.Object) error                        { return nil }
func (r *record) Compare(string, string) (watcher.Agreement, error) { return watcher.Agrees, nil }
func (r *record) EndAudit()                                         {}

func (r *record) Apply(event watch.EventType, obj runtime.Object, _ string) error {
	time.Sleep(r.slow)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.change(r.set, event, obj); err != nil {
		return err
	}
	r.tell("%s %s", event, obj.(metav1.Object).GetName())
	return nil
}

func (r *record) Advance(version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell("advance %s", version)
}

func (r *record) Revoke(d invalidation.Decision, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell("revoke %s", string(d.Revoke))
}

func (r *record) Unordered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell("unordered")
}

// rig is a running watcher, its server, and what its sink was told.
type rig struct {
	*wiretest.Server
	*record
	t     *testing.T
	maps  *wiretest.Collection
	watch *watcher.Watcher
	opts  watcher.Options
	log   klog.Logger
	wrap  func(watcher.Source) watcher.Source // of the source, before start
}

// onWire runs a test in a bubble, with a watcher that is not yet started.
func onWire(t *testing.T, opts watcher.Options, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{Server: wiretest.New(t), record: &record{}, t: t, opts: opts}
		r.maps = r.Resource(wiretest.ConfigMaps)
		test(t, r)
	})
}

func (r *rig) start() {
	r.t.Helper()
	source := watcher.ListWatch(kubernetes.NewForConfigOrDie(r.Config()).CoreV1().ConfigMaps(""))
	if r.wrap != nil {
		source = r.wrap(source)
	}
	var err error
	r.watch, err = watcher.New(source, r.record, r.opts)
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), r.log))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.watch.Run(ctx)
	}()
	r.t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
}

func (r *rig) put(names ...string) {
	for _, name := range names {
		r.maps.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
}

// onLists makes the watcher list, in pages, in place of streaming.
func (r *rig) onLists() {
	r.Break(wiretest.Initial, wiretest.Answer(wiretest.NoWatchList()))
}

// said returns what the sink was told since the last call, when everything is
// quiet.
func (r *rig) said() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}

// names returns what the sink's set holds.
func (r *rig) names() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.set))
}

func (r *rig) count(which wiretest.Which) int {
	synctest.Wait()
	return len(r.Requests(which))
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
