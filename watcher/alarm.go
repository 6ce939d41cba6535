package watcher

import (
	"context"
	"math/rand/v2"
	"time"
)

// alarm is a deadline of the Watcher. All share one timer. An alarm that is not
// set is the zero time.
type alarm int

const (
	limitAlarm    alarm = iota // the phase, or the pause, has taken its time
	silenceAlarm               // nothing was heard for MaxSilence
	clockAlarm                 // time to look whether the newest proof is older than MaxStaleness
	proofAlarm                 // the next proof is due
	auditAlarm                 // the next audit is due
	stageAlarm                 // the stage of the proof has taken its time
	progressAlarm              // a long sync is logged
	alarms                     // how many there are
)

// next returns the earliest alarm and when it is; ok is false if none is set.
func (w *Watcher) nextAlarm() (next alarm, at time.Time, ok bool) {
	for a, t := range w.alarms {
		if !t.IsZero() && (!ok || t.Before(at)) {
			next, at, ok = alarm(a), t, true
		}
	}
	return next, at, ok
}

// wind sets the timer for the earliest alarm.
func (w *Watcher) wind() {
	if _, at, ok := w.nextAlarm(); ok {
		w.timer.Reset(max(0, time.Until(at)))
	} else {
		w.timer.Stop()
	}
}

// ring returns what the earliest alarm says. It reports false if none is due: a
// deadline that moves with every event is moved when it is reached, not before.
func (w *Watcher) ring(ctx context.Context) (o observation, ok bool) {
	now := time.Now()
	a, at, ok := w.nextAlarm()
	if !ok || at.After(now) {
		return o, false
	}
	w.alarms[a] = time.Time{}
	switch a {
	case limitAlarm:
		return w.timeUp(), true
	case silenceAlarm:
		if due := w.heard.Add(w.opts.MaxSilence); due.After(now) {
			w.alarms[silenceAlarm] = due
			return o, false
		}
		w.alarms[silenceAlarm] = now.Add(w.opts.MaxSilence)
		return observation{kind: silent, err: &outOfTouch{"no sign of life from the server", w.opts.MaxSilence, w.lastError()}}, true
	case clockAlarm:
		if Age(w.provenAt, now) <= w.opts.MaxStaleness {
			w.alarms[clockAlarm] = w.nextLook()
			return o, false
		}
		return observation{kind: stale, err: &outOfTouch{"no proof of freshness", w.opts.MaxStaleness, w.lastError()}}, true
	case progressAlarm:
		w.logProgress(ctx)
		return o, false
	case proofAlarm:
		return observation{kind: proofWanted}, true
	case auditAlarm:
		w.auditLater()
		return observation{kind: auditWanted}, true
	default: // stageAlarm
		o.kind = proofLate
		if w.stageTime >= askTime { // else the proof only goes on to its next stage
			o.err = &noAnswer{"proof of freshness", w.stageTime}
		}
		return o, true
	}
}

// auditLater sets the time of the next audit, jittered so that replicas do not
// audit in step.
func (w *Watcher) auditLater() {
	if d := w.opts.AuditInterval; d != 0 {
		w.alarms[auditAlarm] = time.Now().Add(d - rand.N(d/10+1))
	}
}

// nextLook returns when to look again how old the newest proof is: when it will
// have passed the bound, or after a part of that time, since a machine that was
// suspended wakes up with its timers where they were (C7).
func (w *Watcher) nextLook() time.Time {
	part := min(max(w.opts.MaxStaleness/4, 500*time.Millisecond), 5*time.Second)
	due, look := w.provenAt.Add(w.opts.MaxStaleness+1), time.Now().Add(part)
	if look.Before(due) {
		return look
	}
	return due
}

// Age returns how long before now a moment was, on the monotonic or the wall
// clock, whichever says more: the first does not move while a machine is
// suspended, the second can be set back (C7).
func Age(moment, now time.Time) time.Duration {
	return max(now.Sub(moment), now.Round(0).Sub(moment.Round(0)))
}

// verdictTime is the longest that a proof takes on a live server: the bookmark of
// a peek comes within two seconds, if one comes at all.
const verdictTime = 3 * time.Second

// standInTime is what a proof takes if none comes, and an audit stands in.
const standInTime = settleTime + peekTime + 500*time.Millisecond

// proofInterval is how old a proof may become before the next one is asked for,
// so that its verdict comes in time: 60 percent of the bound, which leaves room
// for a second try, or as late as a verdict allows for shorter bounds. For those
// that allow for none there is a least pace. It is jittered downwards.
func proofInterval(bound time.Duration) time.Duration {
	verdict := verdictTime
	if !isTight(bound) {
		verdict = standInTime
	}
	d := max(min(bound*6/10, bound-verdict), bound/5)
	return d - rand.N(d/10)
}

// isTight reports whether a bound is hardly longer than a proof takes.
func isTight(bound time.Duration) bool { return bound != 0 && bound < 2*verdictTime }

// proofRetry is the time between the failure of a proof and the next try.
func proofRetry(bound time.Duration) time.Duration {
	const least, most = 500 * time.Millisecond, 5 * time.Second
	if bound == 0 {
		return most
	}
	return min(max(bound/10, least), most)
}
