package requests

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Kind tells requests apart.
type Kind string

// The kinds that matter to a store. They are told by their queries: a store gets
// no single object, lists in pages of more than one, and opens no other watch of
// three seconds.
const (
	List      Kind = "LIST"      // a page of the set
	WatchList Kind = "WATCHLIST" // a watch that begins with the set
	Watch     Kind = "WATCH"     // a watch from a version
	Probe     Kind = "PROBE"     // a LIST of one object, for the server's version now
	Peek      Kind = "PEEK"      // a second watch, of three seconds, for what the first may have missed
	Other     Kind = "OTHER"     // everything that is no GET
)

// Request is a request and what is known of its answer.
type Request struct {
	Kind  Kind
	Path  string
	Query url.Values
	Began time.Time

	// Status is the HTTP status, zero while there is none. Err is why there never
	// will be one.
	Status int
	Err    error

	// Expired says that the server answered that the version is gone.
	Expired bool
	// Complete says that a set, or a page of one, arrived as a whole.
	Complete bool
	// Over says that the answer has been read or given up.
	Over bool
}

// Version returns the resource version asked for.
func (r Request) Version() string { return r.Query.Get("resourceVersion") }

// BeginsSet reports whether the request asks for the whole set, as a WatchList
// or as the first page of a LIST.
func (r Request) BeginsSet() bool {
	return r.Kind == WatchList || r.Kind == List && r.Query.Get("continue") == ""
}

// Failed reports whether there was no answer, or one that is an error.
func (r Request) Failed() bool { return r.Err != nil || r.Status >= http.StatusBadRequest }

// String is for messages of failed tests.
func (r Request) String() string {
	s := fmt.Sprintf("%s %s %s?%s -> %d", r.Began.Format("05.000"), r.Kind, r.Path, r.Query.Encode(), r.Status)
	for word, is := range map[string]bool{" expired": r.Expired, " complete": r.Complete, " over": r.Over} {
		if is {
			s += word
		}
	}
	if r.Err != nil {
		s += " " + r.Err.Error()
	}
	return s
}

func kindOf(r *http.Request, query url.Values) Kind {
	isTrue := func(name string) bool { return query.Get(name) == "true" || query.Get(name) == "1" }
	switch {
	case r.Method != http.MethodGet:
		return Other
	case isTrue("watch") && isTrue("sendInitialEvents"):
		return WatchList
	case isTrue("watch") && query.Get("timeoutSeconds") == "3":
		return Peek
	case isTrue("watch"):
		return Watch
	case query.Get("limit") == "1":
		return Probe
	default:
		return List
	}
}

// Count returns how many requests are of one of the kinds.
func Count(all []Request, kinds ...Kind) int {
	n := 0
	for _, r := range all {
		for _, kind := range kinds {
			if r.Kind == kind {
				n++
			}
		}
	}
	return n
}

// Main returns the requests that make and follow the set, without those that
// prove it.
func Main(all []Request) []Request {
	var found []Request
	for _, r := range all {
		if r.Kind == List || r.Kind == WatchList || r.Kind == Watch {
			found = append(found, r)
		}
	}
	return found
}

// Sets returns the requests that ask for the whole set.
func Sets(all []Request) []Request {
	var sets []Request
	for _, r := range all {
		if r.BeginsSet() {
			sets = append(sets, r)
		}
	}
	return sets
}

// Unprompted returns those requests for the whole set that nothing called for:
// there was one before that brought a set, and the server has not said since that
// the version is gone, or who asks, or what for, is not right.
func Unprompted(all []Request) []Request {
	var found []Request
	prompted := true
	for _, r := range all {
		if r.BeginsSet() {
			if !prompted {
				found = append(found, r)
			}
			prompted = false
		}
		isMain := r.Kind == List || r.Kind == WatchList || r.Kind == Watch
		if r.Expired || isMain && r.Status >= http.StatusBadRequest && r.Status < http.StatusTooManyRequests || (r.Kind == List || r.Kind == WatchList) && !r.Complete {
			prompted = true
		}
	}
	return found
}
