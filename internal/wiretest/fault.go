package wiretest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// Fault is something that goes wrong with a request.
type Fault func(*exchange)

// Which tells requests apart.
type Which func(Request) bool

// Lists are the requests for lists, and for their pages.
func Lists(r Request) bool { return r.Verb == "list" }

// Later are those for pages of a list after the first.
func Later(r Request) bool { return r.Options.Continue != "" }

// Watches are the requests for watches, WatchLists among them.
func Watches(r Request) bool { return r.Verb == "watch" }

// Initial are those for WatchLists.
func Initial(r Request) bool { return r.Initial() }

// Resumed are those for watches that go on from a version.
func Resumed(r Request) bool { return r.Verb == "watch" && !r.Initial() }

// All are all requests.
func All(Request) bool { return true }

// First returns the first n of the requests.
func First(n int, which Which) Which {
	return func(r Request) bool {
		if n == 0 || !which(r) {
			return false
		}
		n--
		return true
	}
}

// Of returns those of the requests that are for one resource.
func Of(kind Kind, which Which) Which {
	return func(r Request) bool { return r.Resource == kind.GroupVersionResource && which(r) }
}

type breakage struct {
	which  Which
	fault  Fault
	healed chan struct{}
}

func (b *breakage) isHealed() bool {
	select {
	case <-b.healed:
		return true
	default:
		return false
	}
}

// Break lets requests that arrive from now on suffer a fault, until heal is
// called. Requests that hang go on then, and what comes on open watches is no
// longer changed; what a watch was promised when it was opened (its bookmarks,
// its length) stays. Of several faults that answer in place of the server, the
// last one counts.
func (s *Server) Break(which Which, fault Fault) (heal func()) {
	b := &breakage{which: which, fault: fault, healed: make(chan struct{})}
	s.update(func() { s.breaks = append(s.breaks, b) })
	return func() {
		s.update(func() {
			if !b.isHealed() {
				close(b.healed)
			}
		})
	}
}

// Heal heals everything: all faults end, stalled watches go on, and the network
// works.
func (s *Server) Heal() {
	s.update(func() {
		for _, b := range s.breaks {
			if !b.isHealed() {
				close(b.healed)
			}
		}
		s.breaks = nil
		for _, st := range s.streams {
			st.stalled = false
		}
	})
	s.network.update(func() { s.network.down, s.network.dark = false, false })
}

// Together is several faults at once.
func Together(faults ...Fault) Fault {
	return func(x *exchange) {
		for _, f := range faults {
			f(x)
		}
	}
}

// Answer answers with an API status, with its Retry-After if it has one.
func Answer(err *apierrors.StatusError) Fault {
	return func(x *exchange) { x.instead = func() { x.fail(err) } }
}

// Respond answers with any body, and ends the response.
func Respond(code int, header http.Header, body string) Fault {
	return func(x *exchange) { x.instead = func() { x.send(code, header, []byte(body)) } }
}

// Script answers a watch with the given frames alone, and then ends it, or breaks
// the connection off.
func Script(cut bool, frames ...[]byte) Fault {
	return func(x *exchange) {
		if x.Verb != "watch" {
			return
		}
		x.instead = func() {
			x.send(http.StatusOK, nil, slices.Concat(frames...))
			if cut {
				x.w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}
	}
}

// Abort breaks the connection off in place of an answer.
func Abort(x *exchange) { x.instead = func() { panic(http.ErrAbortHandler) } }

// Hang does not answer before the fault is healed.
func Hang(x *exchange) { Slow(1000 * time.Hour)(x) }

// Slow answers late, or when the fault is healed.
func Slow(by time.Duration) Fault {
	return func(x *exchange) {
		healed := x.healed
		x.delays = append(x.delays, func() {
			select {
			case <-time.After(by):
			case <-healed:
			case <-x.ctx.Done():
			}
		})
	}
}

// EditList changes pages of lists before they are sent.
func EditList(edit func(*List)) Fault {
	return func(x *exchange) { x.editList = append(x.editList, edit) }
}

// AsTable sends a Table in place of a list or of objects, as a proxy may that asks
// for what people read.
func AsTable(x *exchange) {
	table := json.RawMessage(`{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"1000"},"columnDefinitions":[],"rows":[]}`)
	x.editList = append(x.editList, func(l *List) { l.APIVersion, l.Kind = "meta.k8s.io/v1", "Table" })
	EditEvents(func(e *Event) {
		if e.Type != watch.Bookmark {
			e.Object = table
		}
	})(x)
}

// EditEvents changes the events of watches before they are sent.
func EditEvents(edit func(*Event)) Fault {
	return func(x *exchange) {
		healed := x.healed
		x.editEvents = append(x.editEvents, func(e *Event) {
			select {
			case <-healed:
			default:
				edit(e)
			}
		})
	}
}

// Forget leaves out events, once each time the fault is switched on, as a server
// whose cache has lost something.
func Forget(n int, event watch.EventType) Fault {
	return EditEvents(func(e *Event) {
		if e.Type == event && n > 0 {
			n--
			e.drop = true
		}
	})
}

// WithoutMetadata takes the metadata from the objects of such events.
func WithoutMetadata(event watch.EventType) Fault {
	return EditEvents(func(e *Event) {
		if e.Type != event {
			return
		}
		var content map[string]any
		if err := json.Unmarshal(e.Object, &content); err != nil {
			panic(err)
		}
		maps.DeleteFunc(content, func(field string, _ any) bool { return field == "metadata" })
		e.Object = marshal(content)
	})
}

// Lag is a replica that has not got further than a version, until it is healed:
// it is silent about what came after, and says so little that only a consistent
// read tells.
func Lag(version int64) Fault {
	return func(x *exchange) {
		consistent := x.Verb == "list" && x.Options.ResourceVersion == "" && x.Options.Continue == ""
		if x.Verb == "list" && !consistent {
			x.past = version
		}
		healed := x.healed
		x.editPlan = append(x.editPlan, func(p *plan) { p.limit, p.unlimited = version, healed })
	}
}

// Past answers from a version long gone, consistent reads as well: a server that
// was restored from a backup, behind the same address as others.
func Past(version int64) Fault {
	return func(x *exchange) {
		healed := x.healed
		x.past = version
		x.editPlan = append(x.editPlan, func(p *plan) { p.limit, p.unlimited = version, healed })
	}
}

// The following change what a watch is like.
var (
	// NoBookmarks sends none but the marker, as some aggregated servers.
	NoBookmarks = editPlan(func(p *plan) { p.bookmarks = false })
	// NoTimeout ignores timeoutSeconds.
	NoTimeout = editPlan(func(p *plan) { p.timeout = 1000 * time.Hour })
	// NoMarker ignores sendInitialEvents, as an old server: a watch from no
	// version begins with the objects there are, and nothing says where they end.
	NoMarker = editPlan(func(p *plan) { p.marker = false })
	// BareMarker ends the initial events with a bookmark like any other.
	BareMarker = editPlan(func(p *plan) { p.annotated = false })
	// HeldHeaders does not begin the response before the first event.
	HeldHeaders = editPlan(func(p *plan) { p.holdHeaders = true })
	// Stalled opens the watch, and nothing comes.
	Stalled = editPlan(func(p *plan) { p.stalled = true })
)

// EndsAfter ends watches after that time.
func EndsAfter(d time.Duration) Fault { return editPlan(func(p *plan) { p.timeout = d }) }

func editPlan(edit func(*plan)) Fault {
	return func(x *exchange) { x.editPlan = append(x.editPlan, edit) }
}
