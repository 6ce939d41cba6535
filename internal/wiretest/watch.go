package wiretest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	bookmarkPeriod = time.Minute     // kube-apiserver's, which adds a little jitter
	bookmarkBefore = 2 * time.Second // the end of the watch
	longestWatch   = 45 * time.Minute
)

// Event is one of a watch, as it is sent.
type Event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`

	drop bool
}

// plan is how a watch is going to be.
type plan struct {
	initial     bool // the objects there are come first
	marker      bool // then a bookmark says so
	annotated   bool // and is recognisable
	bookmarks   bool
	timeout     time.Duration
	holdHeaders bool            // until the first event
	stalled     bool            // nothing is sent, ever
	limit       int64           // nothing newer is sent, if it is not zero
	unlimited   <-chan struct{} // lifts the limit
}

// stream is an open watch. Its fields are guarded by Server.mu.
type stream struct {
	exchange *exchange
	plan
	version  int64    // up to which everything has been sent
	queue    [][]byte // frames that come before anything else
	ended    bool     // when the queue is empty
	end      time.Time
	bookmark time.Time // when the next one is due
}

func (x *exchange) watch() {
	s := x.server
	st, refusal := x.open()
	if refusal != nil {
		x.fail(refusal)
		return
	}
	s.update(func() { s.streams = append(s.streams, st) })
	defer s.update(func() {
		s.streams = slices.DeleteFunc(s.streams, func(other *stream) bool { return other == st })
	})
	x.w.Header().Set("Content-Type", "application/json")
	flush := x.w.(http.Flusher).Flush
	if !st.holdHeaders {
		flush()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		frames, next, over := st.due(time.Now())
		changed := s.changed
		s.mu.Unlock()
		for _, frame := range frames {
			x.w.Write(frame)
		}
		if len(frames) > 0 {
			flush()
		}
		if over {
			return
		}
		timer.Reset(time.Until(next))
		select {
		case <-changed:
		case <-timer.C:
		case <-st.unlimited:
			s.update(func() { st.limit, st.unlimited = 0, nil })
		case <-x.ctx.Done():
			return
		}
	}
}

// open answers a watch request, or refuses it.
func (x *exchange) open() (*stream, *apierrors.StatusError) {
	opts, now := x.Options, time.Now()
	p := plan{
		initial:   x.Initial() || opts.ResourceVersion == "" || opts.ResourceVersion == "0",
		marker:    x.Initial(),
		annotated: true,
		bookmarks: opts.AllowWatchBookmarks,
		timeout:   longestWatch,
	}
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		p.timeout = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	for _, edit := range x.editPlan {
		edit(&p)
	}
	if opts.SendInitialEvents != nil && opts.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		return nil, NoWatchList()
	}
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	truth := &s.truth
	if x.past != 0 {
		truth = truth.at(x.past)
	}
	st := &stream{exchange: x, plan: p, version: truth.version, end: now.Add(p.timeout), bookmark: now.Add(bookmarkPeriod)}
	if p.timeout > bookmarkBefore && p.timeout-bookmarkBefore < bookmarkPeriod {
		st.bookmark = st.end.Add(-bookmarkBefore)
	}
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		version, err := s.truth.parse(opts.ResourceVersion)
		switch {
		case err != nil:
			return nil, apierrors.NewBadRequest("invalid resource version: " + err.Error())
		case p.initial && version > truth.version:
			return nil, TooLargeResourceVersion(version, truth.version)
		case p.initial:
		case version < s.truth.compacted:
			st.queue, st.ended = [][]byte{ErrorEvent(apierrors.NewResourceExpired("too old resource version"))}, true
		default:
			st.version = version
		}
	}
	if p.initial {
		for _, item := range truth.list(x.Resource, x.namespace) {
			st.push(&Event{Type: watch.Added, Object: item.raw})
		}
	}
	if p.marker {
		annotations := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		if !p.annotated {
			annotations = nil
		}
		st.pushBookmark(st.version, annotations)
	}
	return st, nil
}

// due returns what is to be sent now, when to look again, and whether that was
// all. Server.mu is held.
func (st *stream) due(now time.Time) (frames [][]byte, next time.Time, over bool) {
	never := now.Add(24 * time.Hour)
	if st.stalled {
		return nil, never, false
	}
	frames, st.queue = st.queue, nil
	t := &st.exchange.server.truth
	newest := t.version
	if st.limit != 0 {
		newest = min(newest, st.limit)
	}
	if newest > st.version {
		// A watch from the future hears nothing until the future is there.
		i, _ := slices.BinarySearchFunc(t.history, st.version+1, func(c change, v int64) int { return int(c.version - v) })
		for _, c := range t.history[i:] {
			if c.version <= newest && c.resource == st.exchange.Resource &&
				(st.exchange.namespace == "" || c.Namespace == st.exchange.namespace) {
				st.push(&Event{Type: c.event, Object: c.raw})
			}
		}
		st.version = newest
	}
	if !now.Before(st.bookmark) {
		st.bookmark = now.Add(bookmarkPeriod)
		if last := st.end.Add(-bookmarkBefore); now.Before(last) && st.bookmark.After(last) {
			st.bookmark = last
		}
		if st.bookmarks && st.version <= newest {
			st.pushBookmark(st.version, nil)
		}
	}
	frames, st.queue = append(frames, st.queue...), nil
	if st.ended || !now.Before(st.end) {
		return frames, never, true
	}
	next = st.end
	if st.bookmark.Before(next) {
		next = st.bookmark
	}
	return frames, next, false
}

// push queues an event, as the faults would have it.
func (st *stream) push(e *Event) {
	for _, edit := range st.exchange.editEvents {
		edit(e)
	}
	if !e.drop {
		st.queue = append(st.queue, Frame(e.Type, e.Object))
	}
}

func (st *stream) pushBookmark(version int64, annotations map[string]string) {
	kind := st.exchange.kind
	st.push(&Event{Type: watch.Bookmark, Object: marshal(metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: st.exchange.server.truth.format(version),
			Annotations:     annotations,
		},
	})})
}

// Frame returns an event on the wire. The object is encoded as JSON.
func Frame(event watch.EventType, object any) []byte {
	return append(marshal(Event{Type: event, Object: marshal(object)}), '\n')
}

// ErrorEvent returns an error event on the wire.
func ErrorEvent(err *apierrors.StatusError) []byte { return Frame(watch.Error, statusOf(err)) }

// NoWatchList is how a server refuses a WatchList that it does not offer.
func NoWatchList() *apierrors.StatusError {
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
	})
}
