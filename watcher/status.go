package watcher

import (
	"sync"
	"sync/atomic"
	"time"
)

// Status is what a Watcher is doing, for people and for error messages.
type Status struct {
	// Phase is what it does now, in words: "listing", "watching", "waiting to
	// retry". Empty before Run.
	Phase string
	// Proof is how far the proof of freshness under way has come, in words; empty
	// if none is.
	Proof string
	// Progress is how far the set that is being listed has come.
	Progress Progress
	// WatchListRefused says why initial sets do not come by WatchList although
	// client-go would use it; empty if they do (C9).
	WatchListRefused string
	// Heard is when the server last gave a sign of life: an event, a bookmark, a
	// proof. Its distance from now is the silence.
	Heard time.Time
	// Unprovable says that the server gives no resource versions, so that nothing
	// can be proven about freshness.
	Unprovable bool
	// Failures is the number of attempts in a row that failed (C16, C59).
	Failures int
	// LastError is what the last failed attempt failed with, nil if the watch has
	// been opened, or a proof has succeeded, since. LastErrorAt is when.
	LastError   error
	LastErrorAt time.Time
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
	if heard := w.status.heard.Load(); heard != 0 {
		s.Heard = time.Unix(0, heard)
	}
	return s
}

// report brings the status up to date after a step with the given effects.
func (w *Watcher) report(e effects) {
	w.status.update(func(s *Status) {
		s.Phase = w.state.phase.String()
		s.Proof = w.state.proof.stage.String()
		s.WatchListRefused = w.state.why
		s.NextAttempt = time.Time{}
		if w.state.phase == waiting {
			s.NextAttempt = w.alarms[limitAlarm]
		}
		if e.publish || e.proven || e.follow && !w.state.doubt {
			s.Failures, s.LastError, s.LastErrorAt = 0, nil, time.Time{}
		}
		s.Unprovable = e.excused || s.Unprovable && !e.proven
	})
}

func (w *Watcher) lastError() error { return w.Status().LastError }
