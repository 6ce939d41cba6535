package debug

import (
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
)

// window is the time that a timeline shows.
type window struct{ from, to time.Time }

// at is where a moment is, in percent.
func (w window) at(t time.Time) float64 {
	percent := 100 * float64(t.Sub(w.from)) / float64(w.to.Sub(w.from))
	return min(max(percent, 0), 100)
}

// period is a part of a store's timeline in which nothing changed.
type period struct {
	Kind        string  // class of its looks: "ready", "unready", "closed"
	Left, Width float64 // percent
	Label       string  // short
	Title       string  // long
}

// periods cuts a store's life, as far as it is remembered, into periods. Before it
// became ready for the first time there is none, unless it still is not.
func periods(s safestore.Status, w window) []period {
	var all []period
	add := func(kind, label string, generation uint64, from, to time.Time) {
		if !to.Before(w.from) && !from.After(w.to) {
			left := w.at(from)
			all = append(all, period{kind, left, w.at(to) - left, label,
				fmt.Sprintf("%s, generation %d, %s, for %s", label, generation, clock(from, w.to), length(to.Sub(from)))})
		}
	}
	moves := s.Transitions
	if len(moves) == 0 && s.State == token.Pending && !s.Since.IsZero() {
		add("unready", "not ready yet", s.Generation, s.Since, w.to)
	}
	for i, move := range moves {
		end := w.to
		if i+1 < len(moves) {
			end = moves[i+1].At
		}
		switch {
		case move.State == token.Ready:
			add("ready", "ready", move.Generation, move.At, end)
		case move.Reason == invalidation.Closed:
			add("closed", "Closed", move.Generation, move.At, end)
		default:
			// The token that is waited for is the next one.
			add("unready", string(move.Reason), move.Generation+1, move.At, end)
		}
	}
	return all
}

// move is a line of the list of transitions.
type move struct {
	When, Ago  string
	Machine    string // the time for machines
	Generation uint64
	Ready      bool
	What       string
	Cause      string
	Objects    int
	Version    string
}

// moves are a store's transitions, newest first.
func moves(s safestore.Status, now time.Time) []move {
	all := make([]move, 0, len(s.Transitions))
	for i := len(s.Transitions) - 1; i >= 0; i-- {
		t := s.Transitions[i]
		m := move{
			When: clock(t.At, now), Ago: length(now.Sub(t.At)), Machine: t.At.UTC().Format(time.RFC3339), Generation: t.Generation,
			Ready: t.State == token.Ready, What: "ready", Cause: text(t.Cause), Objects: t.Objects, Version: t.ResourceVersion,
		}
		if !m.Ready {
			m.What = "revoked: " + string(t.Reason)
			if !t.WasReady {
				m.What = "revoked before it was ready: " + string(t.Reason)
			}
		}
		all = append(all, m)
	}
	return all
}
