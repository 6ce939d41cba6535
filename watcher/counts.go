package watcher

import (
	"iter"
	"sync/atomic"
	"time"
)

// Counts are what a Watcher has done since Run was called. They only grow.
type Counts struct {
	// Lists is how often the set was begun to be listed, by a LIST or a WatchList,
	// and Syncs how often it was complete.
	Lists, Syncs uint64
	// Relists is how often a set that had been complete had to be listed again,
	// however many lists that took.
	Relists uint64
	// Watches is how often a watch was open to follow a set.
	Watches uint64
	// Failures is how many attempts failed: requests, watches and proofs.
	Failures uint64

	// ProofsAsked is how often the server was asked for a proof of freshness, audits
	// among them. Proofs is how many came of it, and ProofsFailed how many failed, or
	// showed that the set was not up to date; the rest was overtaken by a newer
	// question or by the end of the watch.
	ProofsAsked, Proofs, ProofsFailed uint64
	// Audits is how often the set was listed to be compared.
	Audits uint64

	// Applied is how long events took, each from when it was received to when readers
	// could see it. Those of initial sets are not among them.
	Applied Durations
}

// Durations is how many durations there were, by size. The zero value is none.
type Durations struct {
	// Sum is all of them together.
	Sum time.Duration

	counts [len(bounds) + 1]uint64 // by the bound that they are within; the last ones by none
}

// bounds are those of the buckets. An event takes some microseconds, and longer
// with slow transforms or on a busy machine.
var bounds = [...]time.Duration{
	10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond,
	10 * time.Millisecond, 100 * time.Millisecond, time.Second,
}

// Count returns how many durations there were.
func (d Durations) Count() (n uint64) {
	for _, count := range d.counts {
		n += count
	}
	return n
}

// Buckets returns bounds, ascending, each with how many durations were not longer.
func (d Durations) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		var n uint64
		for i, bound := range bounds {
			if n += d.counts[i]; !yield(bound, n) {
				return
			}
		}
	}
}

// stopwatch collects durations. One goroutine adds to it; others may read.
type stopwatch struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (s *stopwatch) add(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	s.counts[i].Add(1)
	s.sum.Add(int64(d))
}

func (s *stopwatch) read() (d Durations) {
	for i := range s.counts {
		d.counts[i] = s.counts[i].Load()
	}
	d.Sum = time.Duration(s.sum.Load())
	return d
}

// count takes note of what a step wants done. Most steps are events, which want
// nothing of what is counted here.
func (w *Watcher) count(e effects) {
	asked, audit := e.ask == askLatest, e.askAudit == askFirstPage
	published := e.publish == granted || e.publish == ungranted
	if !(e.begin || published || e.follow || asked || audit || e.proven || e.failed) {
		return
	}
	w.status.update(func(s *Status) {
		c := &s.Counts
		c.Relists += one(e.begin && w.listing.IsZero() && c.Syncs > 0)
		c.Lists += one(e.begin)
		c.Syncs += one(published)
		c.Watches += one(e.follow)
		c.ProofsAsked += one(asked || audit)
		c.Proofs += one(e.proven)
		c.ProofsFailed += one(e.failed)
		c.Audits += one(audit)
	})
}

func one(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}
