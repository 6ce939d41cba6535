package watcher

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"
)

// carryOut does what a step wants done: first what readers must know, then what
// the server is asked.
func (w *Watcher) carryOut(ctx context.Context, e effects) {
	w.count(e)
	if e.revoke.Revoke != "" || e.revoke.Drop {
		w.sink.Revoke(e.revoke, e.cause)
	}
	if e.publish {
		w.auditLater()
		w.state.small = w.status.built.Load() <= max(w.opts.PageSize, 1)
		w.endProgress(true)
		w.ready(w.begun.AsOf, w.sink.Publish(w.state.version, w.begun))
	}
	if e.moved {
		w.sink.Advance(w.state.version)
	}
	if e.answered {
		w.goesBy = w.asked
	}
	if e.proven {
		w.ready(w.goesBy.AsOf, w.sink.Prove(w.goesBy))
	}
	if e.unproven {
		w.alarms[proofAlarm] = time.Now().Add(proofRetry(w.opts.MaxStaleness))
	}
	if e.heard {
		w.hear()
	}
	if e.begin {
		w.beginProgress()
		w.begun = w.number()
		w.sink.Begin()
	}
	if e.advance {
		w.progress = true
	}
	w.probe(ctx, e.probe)
	if e.stageTime != 0 {
		w.stageTime = e.stageTime
		w.alarms[stageAlarm] = time.Now().Add(e.stageTime)
	}
	w.reconnect = w.reconnect || e.reconnect
	switch {
	case e.pause:
		w.endProgress(false)
		w.pause(e.soon, e.atLeast)
	case e.request != noRequest:
		if w.reconnect && w.opts.Reconnect != nil {
			// Not before the pause: what was cancelled has left the connection by now,
			// so that it can be seen to be idle.
			w.opts.Reconnect()
		}
		w.reconnect = false
		w.ask(ctx, e.request)
		w.setLimit()
	case e.publish, e.follow, e.extend:
		w.setLimit()
	}
	if !e.advance && !e.extend || e.proven {
		w.report(e)
	}
}

// ready takes note of a proof, and of what the sink said to it.
func (w *Watcher) ready(asOf time.Time, wait time.Duration) {
	w.hear()
	w.provenAt = asOf
	w.alarms[proofAlarm], w.alarms[clockAlarm] = time.Time{}, time.Time{}
	if bound := w.opts.MaxStaleness; bound != 0 {
		w.alarms[proofAlarm] = asOf.Add(proofInterval(bound))
		w.alarms[clockAlarm] = w.nextLook()
	}
	if wait != 0 {
		w.alarms[proofAlarm] = time.Now().Add(wait)
	}
}

// hear takes note of a sign of life. The alarm finds out by itself when it
// rings: it is not set again for every event.
func (w *Watcher) hear() {
	w.heard = time.Now()
	w.status.heard.Store(w.heard.UnixNano())
}

// pause ends what is open and starts the wait before the next attempt. One that
// is to come soon is only spread, so that many replicas do not come at once.
func (w *Watcher) pause(soon bool, atLeast time.Duration) {
	if w.progress || w.main.lasted(settled) {
		w.retry.Reset()
		w.progress = false
	}
	w.main.hangUp()
	delay := rand.N(w.opts.MinBackoff/4 + 1)
	if !soon {
		delay = w.retry.NextBackOff()
	}
	w.limit = max(delay, atLeast)
	w.alarms[limitAlarm] = time.Now().Add(w.limit)
}

// setLimit starts the clock for what the phase waits for.
func (w *Watcher) setLimit() {
	switch {
	case w.state.phase == streaming:
		// For as long as initial events come, but no longer than any watch.
		w.limit = min(w.opts.InitialEventsTimeout, w.main.length+watchSlack-time.Since(w.main.askedAt))
	case w.state.phase == watching:
		w.limit = w.main.length + watchSlack - time.Since(w.main.askedAt)
	case w.state.phase == opening && w.state.built:
		w.limit = publishGrace
	default:
		w.limit = w.opts.RequestTimeout
	}
	w.alarms[limitAlarm] = time.Now().Add(w.limit)
}

// note takes a failure down, before anybody hears of what follows from it.
func (w *Watcher) note(ctx context.Context, o observation) {
	if o.err == nil || o.kind == silent || o.kind == stale {
		return // the revocation says it
	}
	klog.FromContext(ctx).V(2).Info("Attempt failed", "phase", w.state.phase.String(), "err", o.err)
	if w.state.phase == streaming && rejectsWatchList(o.err) {
		return // nothing is wrong, and the status has why it is listed instead
	}
	w.status.update(func(s *Status) {
		s.Failures++
		s.Counts.Failures++
		s.LastError, s.LastErrorAt = o.err, time.Now()
	})
}
