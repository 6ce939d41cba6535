package watcher

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Progress is how far the set that is being listed has come. The zero value is
// that none is.
type Progress struct {
	// Objects is how many have arrived.
	Objects int64
	// Total is about how many there will be: what the server says of a list in
	// pages, which it does where nothing is selected, or as many as there were in
	// the set before. Zero is unknown, as for the first set by WatchList.
	Total int64
	// Since is when the list, or WatchList, was begun.
	Since time.Time
	// Rate is how many objects have arrived per second since then.
	Rate float64
	// Left is how long the rest will take at that rate; zero if that is unknown, or
	// nothing is left.
	Left time.Duration
}

// String returns what a person reads in an error: "12000 of about 100000 objects,
// 8s left". It is empty for the zero value.
func (p Progress) String() string {
	if p.Since.IsZero() {
		return ""
	}
	if p.Total == 0 {
		return fmt.Sprintf("%d objects so far", p.Objects)
	}
	said := fmt.Sprintf("%d of about %d objects", p.Objects, p.Total)
	if p.Left >= time.Second {
		said += fmt.Sprintf(", %v left", p.Left.Round(time.Second))
	}
	return said
}

// at returns the progress with what follows from it at a moment.
func (p Progress) at(now time.Time) Progress {
	if p.Objects > p.Total {
		p.Total = 0 // there are more than was thought
	}
	elapsed := now.Sub(p.Since)
	if p.Since.IsZero() || p.Objects == 0 || elapsed <= 0 {
		return p
	}
	p.Rate = float64(p.Objects) / elapsed.Seconds()
	if left := float64(p.Total-p.Objects) / p.Rate; p.Total > 0 && left < math.MaxInt64/float64(time.Second) {
		p.Left = time.Duration(left * float64(time.Second))
	}
	return p
}

// A sync that takes longer than progressAfter is logged, and then again every
// progressEvery until the set is complete.
const (
	progressAfter = 10 * time.Second
	progressEvery = 30 * time.Second
)

// beginProgress takes note of a new list. The clock of the log goes on through
// lists that fail.
func (w *Watcher) beginProgress() {
	now := time.Now()
	w.status.update(func(s *Status) {
		w.status.built.Store(0)
		s.Progress = Progress{Total: w.size, Since: now}
	})
	if w.listing.IsZero() {
		w.listing = now
		w.alarms[progressAlarm] = now.Add(progressAfter)
	}
}

// endProgress takes note that the list is complete, or was given up.
func (w *Watcher) endProgress(complete bool) {
	if complete {
		w.size = w.status.built.Load()
		w.listing, w.alarms[progressAlarm] = time.Time{}, time.Time{}
	}
	w.status.update(func(s *Status) {
		w.status.built.Store(0)
		s.Progress = Progress{}
	})
}

// estimate takes note of what a page says about how many objects there are.
func (w *Watcher) estimate(page metav1.ListInterface) {
	total := w.status.built.Load()
	switch left := page.GetRemainingItemCount(); {
	case left != nil && *left >= 0:
		total += *left
	case page.GetContinue() != "":
		return // it does not say
	}
	w.status.update(func(s *Status) { s.Progress.Total = total })
}

// logProgress tells how far a long sync has come.
func (w *Watcher) logProgress(ctx context.Context) {
	w.alarms[progressAlarm] = time.Now().Add(progressEvery)
	s := w.Status()
	said := []any{
		"phase", s.Phase, "elapsed", time.Since(w.listing).Round(time.Second).String(), "objects", s.Progress.Objects,
	}
	if p := s.Progress; p.Total > 0 {
		said = append(said, "total", p.Total, "left", p.Left.Round(time.Second).String())
	}
	if p := s.Progress; p.Rate > 0 {
		said = append(said, "perSecond", math.Round(p.Rate))
	}
	if s.LastError != nil {
		said = append(said, "failures", s.Failures, "err", s.LastError)
	}
	klog.FromContext(ctx).Info("Still syncing", said...)
}
