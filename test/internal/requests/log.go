package requests

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Log takes requests down in the order in which they were made. The zero value
// is ready to use.
type Log struct {
	mu      sync.Mutex
	all     []*Request
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// Wrap is for rest.Config.Wrap.
func (l *Log) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, handle: func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		request := &Request{Kind: kindOf(r, query), Path: r.URL.Path, Query: query, Began: time.Now()}
		l.change(func() { l.all = append(l.all, request) })
		response, err := next.RoundTrip(r)
		l.change(func() {
			if request.Err = err; err != nil {
				request.Over = true
				return
			}
			request.Status = response.StatusCode
			request.Expired = response.StatusCode == http.StatusGone
		})
		if err == nil {
			response.Body = &body{ReadCloser: response.Body, log: l, request: request}
		}
		return response, err
	}}
}

// All returns a copy of the log.
func (l *Log) All() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copyLocked()
}

// Len returns the number of requests so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// Await waits until the log is as wanted, and returns it.
func (l *Log) Await(ctx context.Context, wanted func([]Request) bool) ([]Request, error) {
	for {
		l.mu.Lock()
		all := l.copyLocked()
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if wanted(all) {
			return all, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return all, context.Cause(ctx)
		}
	}
}

func (l *Log) copyLocked() []Request {
	all := make([]Request, len(l.all))
	for i, r := range l.all {
		all[i] = *r
	}
	return all
}

func (l *Log) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
