package watcher

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/internal/versions"
)

// answered takes an answer to a request: it hands the objects of a page to the
// sink, or begins to listen to a stream.
func (w *Watcher) answered(a answer) observation {
	w.main.answers = nil
	switch {
	case a.err != nil:
		return observation{kind: failed, verb: w.main.verb, err: named(w.main.verb, w.main.verb == listVerb && w.main.trace.reached(), a.err)}
	case a.list != nil:
		w.plain = !w.main.trace.left()
		return w.page(a.list)
	default:
		w.plain = !w.main.trace.left()
		w.main.open(a.stream)
		o := observation{kind: streamOpened, fake: isFake(a.stream)}
		if o.fake {
			if !w.state.proof.fake {
				w.sink.Unordered()
			}
			if w.state.feed.phase == streaming {
				o.kind, o.end = streamEnded, empty // no need to wait for a marker
			}
		}
		return o
	}
}

// isFake reports whether the stream comes from client-go's object tracker, which
// is behind its fake clientsets. Its objects keep the versions that a test gave
// them, and it knows no WatchList.
func isFake(stream watch.Interface) bool {
	switch stream.(type) {
	case *watch.RaceFreeFakeWatcher, *watch.FakeWatcher:
		return true
	default:
		return false
	}
}

// page adds a page of a list to the set.
func (w *Watcher) page(list runtime.Object) observation {
	if kind := list.GetObjectKind().GroupVersionKind().Kind; kind == "Table" {
		return unusableContent("the list is a Table: objects were expected")
	}
	page, err := meta.ListAccessor(list)
	if err != nil {
		return unusableContent("%T is no list", list)
	}
	if err := w.checkType(list); err != nil {
		return observation{kind: failed, err: &unusable{err}}
	}
	// With its own copy of each item, one object does not keep a whole page of
	// others in memory.
	var refused error
	add := func(obj runtime.Object) error {
		refused = w.build(watch.Added, obj)
		return refused
	}
	switch err := meta.EachListItemWithAlloc(list, add); {
	case refused != nil:
		return observation{kind: failed, err: &unusable{refused}}
	case err != nil: // it would show what the items hold
		return unusableContent("%T has items that are no objects", list)
	}
	if isTruncated(page) {
		return observation{kind: failed, verb: listVerb, err: &unusable{errIncomplete}}
	}
	w.estimate(page)
	return w.measured(observation{
		kind: pageListed, version: page.GetResourceVersion(), next: page.GetContinue(),
		prompt: time.Since(w.main.askedAt) < promptly,
	})
}

// promptly is how soon a server answers that has no trouble with its network.
const promptly = 2 * time.Second

// measured says of the end of a set what its size says. One that has less than half of
// what the set before it had is not plausible; nor is a WatchList without any object,
// which some servers end with its marker alone.
func (w *Watcher) measured(o observation) observation {
	n := w.status.built.Load()
	o.small = n <= max(w.opts.PageSize, 1)
	o.implausible = n < w.size/2 || n == 0 && o.kind == initialEnd
	return o
}

// growth returns by how many objects an event makes a set larger.
func growth(event watch.EventType) int64 {
	switch event {
	case watch.Added:
		return 1
	case watch.Deleted:
		return -1
	default:
		return 0
	}
}

func (w *Watcher) build(event watch.EventType, obj runtime.Object) error {
	if err := w.sink.Build(event, obj); err != nil {
		return err
	}
	w.status.built.Add(growth(event))
	return nil
}

// event takes what came from the stream: it hands it to the sink and says what
// it was. Nothing that cannot be applied is passed over (C50).
func (w *Watcher) event(e watch.Event, ok bool) observation {
	if !ok {
		w.main.stream, w.main.events = nil, nil
		return w.ended()
	}
	w.received = time.Now()
	if e.Type == watch.Error {
		return observation{kind: failed, verb: watchVerb, err: serverError(e.Object)}
	}
	w.main.silent = false
	if isNil(e.Object) {
		return unusableContent("a %s event without an object", e.Type)
	}
	if kind := e.Object.GetObjectKind().GroupVersionKind(); isStatus(e.Object) || kind.Kind == "Table" {
		return unusableContent("a %s event with a %s: an object was expected", e.Type, kindName(e.Object))
	}
	m, err := meta.Accessor(e.Object)
	if err != nil {
		return unusableContent("a %s event with a %T: it has no metadata", e.Type, e.Object)
	}
	version := m.GetResourceVersion()
	if e.Type == watch.Bookmark {
		if err := w.checkType(e.Object); err != nil {
			return observation{kind: failed, err: &unusable{err}}
		}
		return w.bookmark(version, m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true")
	}
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	default:
		return unusableContent("an event of unknown type %q", e.Type)
	}
	if w.state.feed.phase == streaming {
		if err := w.build(e.Type, e.Object); err != nil {
			return observation{kind: failed, err: &unusable{err}}
		}
		return observation{kind: initialAdded, live: e.Type != watch.Added}
	}
	return w.apply(e, version)
}

// apply hands an event to the set.
func (w *Watcher) apply(e watch.Event, version string) observation {
	switch err := w.sink.Apply(e.Type, e.Object, w.state.marks.streamed); {
	case errors.Is(err, ErrOutOfOrder), errors.Is(err, ErrContradicts):
		return observation{kind: failed, verb: watchVerb, err: err}
	case err != nil:
		return observation{kind: failed, verb: watchVerb, err: &unusable{err}}
	}
	w.status.applied.add(time.Since(w.received))
	w.size = max(0, w.size+growth(e.Type))
	if w.state.proof.fake {
		version = "" // the versions of a fake's objects are not those of its lists
	}
	if w.allCaught() {
		w.told = append(w.told, observation{kind: proofCaught})
	}
	return observation{kind: changed, version: version, content: w.checked(version)}
}

// ended tells how the stream ended, which its server does not say.
func (w *Watcher) ended() observation {
	o := observation{kind: streamEnded, verb: watchVerb}
	asked := time.Since(w.main.askedAt)
	brief := !w.main.lasted(briefWatch)
	switch silent := w.main.silent; {
	case asked >= w.main.length*9/10:
		o.end = timely
	case brief && silent && asked < briefWatch:
		o.end = empty
	case brief && silent:
		o.end = dropped
	case brief:
		o.end = abrupt
	}
	return o
}

func (w *Watcher) bookmark(version string, end bool) observation {
	switch {
	case w.state.feed.phase == streaming && end:
		return w.measured(observation{kind: initialEnd, version: version})
	case w.state.feed.phase == streaming:
		// No other is sent before the marker by a server that will send one.
		return observation{kind: bookmarked, live: true}
	case !w.state.proof.fake && versions.Older(version, w.state.marks.streamed):
		return observation{kind: failed, verb: watchVerb, err: fmt.Errorf("bookmark at resource version %s after %s: %w",
			version, w.state.marks.streamed, ErrOutOfOrder)}
	}
	if version != "" && !versions.Older(version, w.state.marks.complete) {
		w.sink.Advance(version)
	}
	return observation{kind: bookmarked, version: version, content: w.checked(version)}
}

// serverError is the error in an error event. What is not a Status is described
// by its type alone: it may be anything.
func serverError(obj runtime.Object) error {
	if status, ok := obj.(*metav1.Status); ok {
		return withoutContents(apierrors.FromObject(status))
	}
	return &unusable{fmt.Errorf("an error event with a %T instead of a Status", obj)}
}

// isStatus reports whether obj is a Status that passes for an object (C32).
func isStatus(obj runtime.Object) bool {
	if _, ok := obj.(*metav1.Status); ok {
		return true
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	return kind.Kind == "Status" && kind.GroupVersion() == metav1.Unversioned
}

func kindName(obj runtime.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return fmt.Sprintf("%T", obj)
}

func unusableContent(format string, args ...any) observation {
	return observation{kind: failed, verb: watchVerb, err: &unusable{fmt.Errorf(format, args...)}}
}
