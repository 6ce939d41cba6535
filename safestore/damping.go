package safestore

import (
	"math/rand/v2"
	"time"
)

// The pace of re-arming. A token that lasts for steadyFor ends the series; each
// further one in a series that does not makes the next Ready wait twice as long.
const (
	steadyFor  = 2 * time.Minute
	firstDelay = time.Second
	mostDelay  = 30 * time.Second
)

// damping keeps a store that is revoked again and again from becoming ready, and
// all that depend on it from starting over, at the same rate. The zero value
// delays nothing.
type damping struct {
	readyAt time.Time // when the newest token became ready
	series  int       // tokens in a row that did not last
	until   time.Time // no token becomes ready before
}

func (d *damping) ready(now time.Time) { d.readyAt = now }

// revoked takes note of the end of a token that was ready. The first ones of a
// series cost nothing: an API server that restarts is no reason to wait.
func (d *damping) revoked(now time.Time) {
	if now.Sub(d.readyAt) >= steadyFor {
		d.series = 0
	}
	d.series++
	if d.series <= 2 {
		return
	}
	delay := mostDelay
	if doublings := d.series - 3; doublings < 5 {
		delay = min(mostDelay, firstDelay<<doublings)
	}
	d.until = now.Add(delay - rand.N(delay/5))
}

// wait returns how long the next token must wait, zero if it need not.
func (d *damping) wait(now time.Time) time.Duration { return max(0, d.until.Sub(now)) }
