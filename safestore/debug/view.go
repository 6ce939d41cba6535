package debug

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// view is what is on the page.
type view struct {
	window
	Now           string
	Ready, Stores int
	Window        string
	Auto          bool     // the window was not asked for
	Windows       []string // that can be asked for
	Refresh       int
	Ticks         []string
	Rows          []row
}

// row is one store or group.
type row struct {
	Name    string
	IsGroup bool
	Group   string // the group that it is shown below, if any

	State      string // ready, not ready, closed
	Reason     string // why it is not ready, in one word
	Why        string // and in full
	Generation uint64
	Since      string // for how long

	// The rest is empty for a group.
	Age, Silence, Objects, Version, Doing, Next string
	LastError, LastErrorAgo                     string
	Failures                                    int
	Notes                                       []string

	Periods []period
	Moves   []move
}

func newView(w window, auto bool, refresh int) *view {
	length := w.to.Sub(w.from)
	v := &view{
		window: w, Now: w.to.UTC().Format("2006-01-02 15:04:05 UTC"),
		Window: span(length), Windows: []string{"15m", "1h", "24h"}, Auto: auto, Refresh: refresh,
	}
	for _, part := range []time.Duration{3, 2, 1} {
		v.Ticks = append(v.Ticks, "−"+span(length*part/3))
	}
	v.Ticks = append(v.Ticks, "now")
	return v
}

// add adds a store, or a group and its stores.
func (v *view) add(m safestore.Readiness) {
	own, group := m.Status(), ""
	stores := m.Stores()
	if len(stores) != 1 || stores[0].Name != m.Name() {
		group = m.Name()
		r := v.row(own)
		r.IsGroup = true
		v.Rows = append(v.Rows, r)
	}
	for _, s := range stores {
		r := v.row(s)
		r.Group = group
		r.describe(s, v.to)
		v.Rows = append(v.Rows, r)
		v.Stores++
		if s.State == token.Ready {
			v.Ready++
		}
	}
}

// row has what stores and groups have in common.
func (v *view) row(s safestore.Status) row {
	r := row{
		Name: s.Name, State: "ready", Generation: s.Generation, Since: ago(s.Since, v.to),
		Periods: periods(s, v.window), Moves: moves(s, v.to),
	}
	if s.State != token.Ready {
		r.State, r.Reason = "not ready", "never ready"
		if s.Since.IsZero() {
			r.Reason = safestore.ErrNotStarted.Error()
		}
		if s.Revocation != nil {
			r.Reason, r.Why = string(s.Revocation.Reason), text(s.Revocation.Cause)
			if s.Revocation.Reason == invalidation.Closed {
				r.State = "closed"
			}
		}
	}
	return r
}

// describe adds what only a store has.
func (r *row) describe(s safestore.Status, now time.Time) {
	w := s.Watch
	r.Age, r.Silence = ago(s.Proven, now), ago(w.Heard, now)
	r.Objects, r.Version = fmt.Sprint(s.Objects), s.ResourceVersion
	r.Doing = w.Phase
	if w.Proof != "" {
		r.Doing += ", " + w.Proof
	}
	if progress := w.Progress.String(); progress != "" {
		r.Doing += ", " + progress
	}
	if w.NextAttempt.After(now) {
		r.Next = "in " + length(w.NextAttempt.Sub(now))
	}
	r.Failures = w.Failures
	if w.LastError != nil {
		r.LastError, r.LastErrorAgo = text(w.LastError), ago(w.LastErrorAt, now)
		if r.Why == r.LastError {
			r.Why = ""
		}
	}
	for _, sub := range s.Subscriptions {
		note := fmt.Sprintf("Subscription %s: %d changes", sub.Name, sub.Changes)
		if sub.CaughtUp != 0 {
			note += fmt.Sprintf(", caught up with generation %d", sub.CaughtUp)
		}
		if sub.Lag > 0 {
			note += ", behind for " + length(sub.Lag)
		}
		r.Notes = append(r.Notes, note)
	}
	if w.Unversioned {
		r.Notes = append(r.Notes, "The server gives no resource versions: each proof of freshness lists and compares everything.")
	}
	if w.WatchListRefused != "" {
		r.Notes = append(r.Notes, "Initial sets do not come by WatchList: "+w.WatchListRefused)
	}
	if s.Damped.After(now) {
		r.Notes = append(r.Notes, "Tokens did not last: the next one is kept from being ready for "+length(s.Damped.Sub(now))+".")
	}
}

// longest is how much of an error is shown: proxies answer with whole pages.
const longest = 600

// text is an error in one line.
func text(err error) string {
	if err == nil {
		return ""
	}
	runes := []rune(strings.Join(strings.Fields(err.Error()), " "))
	if len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return string(runes)
}

// ago is how long before now a moment was, empty if it was not.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return length(watcher.Age(t, now))
}

// length is a duration for people: with two units at most.
func length(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// span is a round duration, without the zeroes at its end.
func span(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, zeroes := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zeroes) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// clock is the time of day, with the date if it is not that of now.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
