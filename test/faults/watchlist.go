package faults

import (
	"bytes"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/test/internal/gateway"
)

// endMarker is in the bookmark that ends the initial events of a WatchList.
var endMarker = []byte(metav1.InitialEventsAnnotationKey)

// unmarked is a fault that is there when the caches are started: a WatchList has
// no end marker.
func unmarked(name, injects string, edit func(event []byte) ([]byte, bool)) Fault {
	return Fault{
		Name:    name,
		Injects: injects,
		Right:   "Until the set is complete reads fail, and say so. After a while without the marker the set is listed instead: the store is ready before the fault is over.",
		AtStart: true,
		Least:   25 * time.Second, // ten of which the store waits for the marker
		Expect:  Expect{Meanwhile: true},
		Inject: func(ctx context.Context, s *Stage) error {
			s.Gateway.EditEvents(gateway.Each(edit))
			err := s.Hold(ctx)
			s.Gateway.EditEvents(nil)
			s.Gateway.End()
			return err
		},
	}
}

// endMarkerMissing is a WatchList that never says that it is complete (C9).
func endMarkerMissing() Fault {
	return unmarked("watchlist-unmarked", "From the start, a WatchList brings its objects and what changes, but no end marker, and stays open.",
		func(event []byte) ([]byte, bool) {
			if bytes.Contains(event, endMarker) {
				return nil, true
			}
			return event, true
		})
}

// endMarkerCloses is a WatchList that ends instead of being complete (C9).
func endMarkerCloses() Fault {
	return unmarked("watchlist-closing", "From the start, a WatchList brings its objects, and ends where its end marker should be.",
		func(event []byte) ([]byte, bool) {
			if bytes.Contains(event, endMarker) {
				return nil, false
			}
			return event, true
		})
}

// endMarkerStripped is a proxy that knows no bookmarks (C9).
func endMarkerStripped() Fault {
	f := unmarked("watchlist-stripped", "From the start, a proxy takes all bookmarks out of watches, the end marker of a WatchList as well.", nil)
	f.Inject = func(ctx context.Context, s *Stage) error {
		s.Gateway.DropBookmarks()
		err := s.Hold(ctx)
		s.Gateway.EditEvents(nil)
		s.Gateway.End()
		return err
	}
	return f
}
