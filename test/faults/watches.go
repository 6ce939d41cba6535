package faults

import (
	"context"
	"net/url"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// bookmarksStripped is the same proxy, later (C3).
func bookmarksStripped() Fault {
	return Fault{
		Name:    "bookmarks-stripped",
		Injects: "Open watches end. A proxy takes all bookmarks out of those that are opened again.",
		Right:   "Changes that come prove as much. Answers stay right; reads may fail for Stale or Stuck with a bound of less than ten seconds.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck}},
		Inject: func(ctx context.Context, s *Stage) error {
			s.Gateway.DropBookmarks()
			s.Gateway.End()
			err := s.Hold(ctx)
			s.Gateway.EditEvents(nil)
			return err
		},
	}
}

// timeoutsIgnored is a server that does not end watches (C4).
func timeoutsIgnored() Fault {
	return Fault{
		Name:    "timeouts-ignored",
		Injects: "Open watches end. Something takes timeoutSeconds out of the requests: the server keeps watches for half an hour and more.",
		Right:   "Nobody depends on it: reads go on, and a watch that lasts too long is closed by the store.",
		Expect:  Expect{Steady: true},
		Inject: func(ctx context.Context, s *Stage) error {
			s.Gateway.Edit(func(query url.Values) { query.Del("timeoutSeconds") })
			s.Gateway.End()
			err := s.Hold(ctx)
			s.Gateway.Edit(func(url.Values) {})
			return err
		},
	}
}

// closedEverySecond is a server that does nothing else (C48).
func closedEverySecond() Fault {
	return Fault{
		Name:    "closed-every-second",
		Injects: "All watches end every second, in good order.",
		Right:   "They resume from where they were: reads go on, and nothing is listed again.",
		Expect:  Expect{Steady: true},
		Inject: func(ctx context.Context, s *Stage) error {
			return s.Every(ctx, time.Second, func() error {
				s.Gateway.End()
				return nil
			})
		},
	}
}
