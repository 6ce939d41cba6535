package watcher

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// Status is what a Watcher is doing, for people and for error messages.
type Status struct {
	// Phase is what it does now, in words: "listing", "watching", "waiting to
	// retry". Empty before Run.
	Phase string
	// Proof is how far the proof of freshness under way has come, in words; empty
	// if none is.
	Proof string
	// Delay is why a request that is under way has no result yet, if it is not the
	// server's silence: it waits in the client's own rate limiter, or client-go repeats
	// it because the server asked for patience. Empty if there is no such request.
	Delay string
	// Progress is how far the set that is being listed has come.
	Progress Progress
	// WatchListRefused says why initial sets do not come by WatchList although
	// client-go would use it; empty if they do (C9).
	WatchListRefused string
	// Heard is when the server last gave a sign of life: an event, a bookmark, a
	// proof. Its distance from now is the silence.
	Heard time.Time
	// Unversioned says that the server gives no resource versions: a proof of
	// freshness is a list of everything whose contents are compared with the set.
	Unversioned bool
	// Failures is the number of attempts in a row that failed (C16, C59).
	Failures int
	// LastError is what the last failed attempt failed with, nil if the watch has
	// been opened, or a proof has succeeded, since. LastErrorAt is when.
	LastError   error
	LastErrorAt time.Time
	// LastReason is what LastError would revoke for by the default policy; empty for
	// trouble on the way to the server, which revokes nothing by itself.
	LastReason invalidation.Reason
	// NextAttempt is when the next one begins, if Phase is "waiting to retry".
	NextAttempt time.Time
	// Counts are what it has done so far.
	Counts Counts
}

// statusBoard is where the goroutine of Run leaves its status for others.
type statusBoard struct {
	built   atomic.Int64 // objects of the set that is being listed
	heard   atomic.Int64 // nanoseconds of the Unix epoch, 0 for never
	applied stopwatch
	traces  [exchanges]atomic.Pointer[trace] // of the newest requests, main first

	mu     sync.Mutex
	status Status
}

func (b *statusBoard) update(f func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.status)
}

// Status returns what the watcher is doing. It never blocks on the server.
func (w *Watcher) Status() Status {
	w.status.mu.Lock()
	defer w.status.mu.Unlock()
	s := w.status.status
	s.Progress.Objects = w.status.built.Load()
	s.Progress = s.Progress.at(time.Now())
	s.Counts.Applied = w.status.applied.read()
	for i := range w.status.traces {
		if t := w.status.traces[i].Load(); t != nil && s.Delay == "" {
			s.Delay = t.delayed()
		}
	}
	if heard := w.status.heard.Load(); heard != 0 {
		s.Heard = time.Unix(0, heard)
	}
	return s
}

// report brings the status up to date after a step with the given effects.
func (w *Watcher) report(e effects) {
	w.status.update(func(s *Status) {
		s.Phase = w.state.feed.phase.String()
		s.Proof = w.state.proof.stage.String()
		s.NextAttempt = time.Time{}
		if w.state.feed.phase == waiting {
			s.NextAttempt = w.alarms[limitAlarm]
		}
		if e.publish == granted || e.proven || e.follow && w.state.proof.owed|w.state.proof.paying == 0 {
			s.Failures, s.LastError, s.LastErrorAt, s.LastReason = 0, nil, time.Time{}, ""
		}
		s.Unversioned = w.state.feed.held && (w.state.proof.fake || !w.state.marks.resumable())
	})
}

func (w *Watcher) lastError() error { return w.Status().LastError }
