package bench

import (
	"context"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// feed is a server without a network: it lists pods in pages and sends the events
// that it is told to. One cache is fed by one feed, and one goroutine changes it.
type feed struct {
	decodes bool // each LIST makes objects of its own, as one that is decoded does

	mu      sync.Mutex
	pods    []*corev1.Pod
	version uint64
	began   time.Time // when the last LIST of everything was asked for
	onLast  func()    // called when its last page is asked for, if not nil

	streams chan *stream // opened, not yet sent to
	stream  *stream      // the one that is sent to
}

var (
	_ watcher.Source                                      = (*feed)(nil)
	_ cache.ListerWatcher                                 = (*feed)(nil)
	_ cache.ListerWatcherWithContext                      = (*feed)(nil)
	_ interface{ IsWatchListSemanticsUnSupported() bool } = (*feed)(nil)
)

type stream struct {
	*watch.ProxyWatcher
	events chan watch.Event
}

// newFeed returns a feed of pods, which it does not change.
func newFeed(pods []*corev1.Pod) *feed {
	return &feed{
		pods:    append([]*corev1.Pod(nil), pods...),
		version: uint64(len(pods)),
		streams: make(chan *stream, 1),
	}
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (f *feed) ListWithContext(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, _ := strconv.Atoi(opts.Continue)
	to := len(f.pods)
	last := opts.Limit == 0 || from+int(opts.Limit) >= to
	if !last {
		to = from + int(opts.Limit)
	}
	if from == 0 && opts.Limit != 1 { // which asks for the version alone
		f.began = time.Now()
	}
	if last && f.onLast != nil {
		f.onLast()
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(f.version, 10)}}
	if !last {
		list.Continue = strconv.Itoa(to)
	}
	list.Items = make([]corev1.Pod, to-from)
	for i, pod := range f.pods[from:to] {
		if f.decodes {
			pod.DeepCopyInto(&list.Items[i])
		} else {
			list.Items[i] = *pod
		}
	}
	return list, nil
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (f *feed) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	events := make(chan watch.Event) // as unbuffered as client-go's
	opened := &stream{ProxyWatcher: watch.NewProxyWatcher(events), events: events}
	select {
	case f.streams <- opened:
		return opened, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// List implements cache.Lister.
func (f *feed) List(opts metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), opts)
}

// Watch implements cache.Watcher.
func (f *feed) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), opts)
}

// IsWatchListSemanticsUnSupported says that there is no WatchList.
func (f *feed) IsWatchListSemanticsUnSupported() bool { return true }

// update changes the pod at a place, and sends the event of it.
func (f *feed) update(ctx context.Context, place int) (*corev1.Pod, error) {
	pod := f.change(place)
	return pod, f.send(ctx, watch.Event{Type: watch.Modified, Object: pod})
}

// change changes the pod at a place, and sends nothing.
func (f *feed) change(place int) *corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	f.pods[place] = changed(f.pods[place], f.version)
	return f.pods[place]
}

// expire makes the client list everything again.
func (f *feed) expire(ctx context.Context) error {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	return f.send(ctx, watch.Event{Type: watch.Error, Object: &status})
}

// send sends an event on the newest stream.
func (f *feed) send(ctx context.Context, event watch.Event) error {
	for {
		if f.stream == nil {
			select {
			case f.stream = <-f.streams:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case f.stream.events <- event:
			return nil
		case <-f.stream.StopChan():
			f.stream = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listBegan returns when everything was last asked for.
func (f *feed) listBegan() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.began
}
