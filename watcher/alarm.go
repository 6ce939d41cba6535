package watcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// alarm is a deadline of the Watcher. All share one timer. An alarm that is not
// set is the zero time.
type alarm int

const (
	limitAlarm      alarm = iota // the phase, or the pause, has taken its time
	silenceAlarm                 // nothing was heard for MaxSilence
	clockAlarm                   // time to look whether the newest proof is older than MaxStaleness
	proofAlarm                   // the next proof is due
	stageAlarm                   // the stage of the proof has taken its time
	auditAlarm                   // the next audit is due
	auditStageAlarm              // the stage of the audit has taken its time
	progressAlarm                // a long sync is logged
	alarms                       // how many there are
)

// noAlarm is an alarm that is not set.
var noAlarm time.Time

// set sets an alarm of a limited time.
func (w *Watcher) set(a alarm, limit time.Duration) {
	w.limits[a] = limit
	w.alarms[a] = time.Now().Add(limit)
}

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
	w.alarms[a] = noAlarm
	switch a {
	case limitAlarm:
		return w.timeUp()
	case silenceAlarm:
		return w.quiet(now)
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
		return observation{kind: proofDue, by: w.dueFor()}, true
	case auditAlarm:
		w.auditLater()
		return observation{kind: auditWanted}, true
	case stageAlarm:
		return w.stageUp(stageAlarm, proofLate, &w.side, "proof of freshness")
	default:
		return w.stageUp(auditStageAlarm, auditLate, &w.auditSide, "audit")
	}
}

// timeUp returns what it means that the phase, or the pause, has taken its time. It
// reports false if the request has not: its time is the server's.
func (w *Watcher) timeUp() (o observation, ok bool) {
	o = observation{kind: timedOut}
	limit := w.limits[limitAlarm]
	switch phase := w.state.feed.phase; {
	case phase == waiting:
		return observation{kind: waited}, true
	case phase == watching:
		return o, true // no failure: the watch's own time
	case phase == streaming && w.main.stream != nil:
		o.err = fmt.Errorf("%w: given up after %v", errNoMarker, time.Since(w.main.askedAt).Round(time.Second))
		return o, true
	case phase == opening && !w.state.feed.late && w.state.feed.denied != watchVerb:
		if !w.plain && !w.main.trace.left() {
			w.set(limitAlarm, limit) // it is in the client still
			return o, false
		}
		return o, true
	default:
		left, why := w.main.trace.patient(limit, patience, w.plain)
		if left > 0 {
			w.alarms[limitAlarm] = time.Now().Add(left)
			return o, false
		}
		o.err = &noAnswer{phase.String(), why}
		return o, true
	}
}

// stageUp returns what it means that the stage of a proof or an audit has taken its
// time. It reports false if a request of it has not.
func (w *Watcher) stageUp(a alarm, k kind, side *exchange, what string) (o observation, ok bool) {
	o.kind = k
	if side.answers == nil {
		return o, true // it goes on to its next stage
	}
	most := patience
	if w.state.proof.paying&silence != 0 {
		most = 0 // a server that only asks for patience does not end a silence
	}
	left, why := side.trace.patient(w.limits[a], most, w.plain)
	if left > 0 {
		w.alarms[a] = time.Now().Add(left)
		return o, false
	}
	o.err = &noAnswer{what, why}
	return o, true
}

// quiet returns what it means that nothing was heard. Where no watch is open the proof
// is asked for a little earlier, so that its verdict is there in time. It reports false
// if something was heard: the alarm is not set again for every event.
func (w *Watcher) quiet(now time.Time) (o observation, ok bool) {
	lead := time.Duration(0)
	if w.state.feed.phase != watching && w.state.feed.held {
		lead = min(askTime, w.opts.MaxSilence/2)
	}
	if due := w.heard.Add(w.opts.MaxSilence - lead); due.After(now) {
		w.alarms[silenceAlarm] = due
		return o, false
	}
	w.alarms[silenceAlarm] = now.Add(w.opts.MaxSilence)
	w.hurry(stageAlarm, &w.side, now)
	if w.state.proof.stage == auditing {
		w.hurry(auditStageAlarm, &w.auditSide, now)
	}
	return observation{kind: silent, err: &outOfTouch{"no sign of life from the server", w.opts.MaxSilence, w.lastError()}}, true
}

// hurry has no more patience with what a proof has asked than if it was asked now.
func (w *Watcher) hurry(a alarm, side *exchange, now time.Time) {
	if soon := now.Add(askTime); side.answers != nil && w.alarms[a].After(soon) {
		w.alarms[a], w.limits[a] = soon, min(w.limits[a], askTime)
	}
}

// dueFor returns whom the next proof of the schedule is for.
func (w *Watcher) dueFor() debts {
	var by debts
	if w.opts.MaxStaleness != 0 {
		by |= schedule
	}
	if w.waits {
		by |= waiter
	}
	return by
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

// proofRetry returns the shortest and the longest time between the failure of a proof
// and the next try.
func proofRetry(bound time.Duration) (least, most time.Duration) {
	if bound == 0 {
		return 5 * time.Second, 30 * time.Second
	}
	least = min(max(bound/10, 500*time.Millisecond), 5*time.Second)
	return least, max(least, min(bound/4, 30*time.Second))
}
