package watcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// carryOut does what a step wants done: first what readers must know, then what
// the server is asked.
func (w *Watcher) carryOut(ctx context.Context, e effects) {
	w.count(e)
	if e.revoke.Revoke != "" || e.revoke.Drop {
		w.sink.Revoke(e.revoke, e.cause)
	}
	w.tellSink(e)
	if e.heard {
		w.hear()
	}
	w.endQuestions(e)
	if e.ask != noQuestion || e.askAudit == askFirstPage {
		w.sink.Remember(true)
	}
	w.inquire(ctx, e.ask)
	w.audits(ctx, e.askAudit)
	if e.wait != 0 {
		w.set(stageAlarm, e.wait)
	}
	if e.auditWait != 0 {
		w.set(auditStageAlarm, e.auditWait)
	}
	w.approach(ctx, e)
	if e.noWatchList != nil {
		w.status.update(func(s *Status) { s.WatchListRefused = e.noWatchList.Error() })
	}
	if !e.advance && !e.extend || e.proven {
		w.report(e)
	}
}

// tellSink tells the sink what has become of its set.
func (w *Watcher) tellSink(e effects) {
	switch e.publish {
	case granted, ungranted:
		w.auditLater()
		w.endProgress(true)
		wait := w.sink.Publish(w.state.marks.complete, w.begun, e.publish == granted)
		w.ready(w.begun.AsOf, wait)
	case confirmed:
		w.ready(w.begun.AsOf, w.sink.Prove(w.begun))
	}
	if e.moved {
		w.sink.Advance(w.state.marks.complete)
	}
	if e.answered {
		w.goesBy = w.asked
	}
	if e.proven {
		by := w.goesBy
		if e.audited {
			by = w.auditing
		}
		w.again.Reset()
		w.elsewhere.Reset()
		w.ready(by.AsOf, w.sink.Prove(by))
	}
	if e.discard {
		w.sink.Discard()
	}
	if e.begin {
		w.beginProgress()
		w.begun = w.number()
		w.sink.Begin()
	}
}

// endQuestions ends what is asked beside the feed.
func (w *Watcher) endQuestions(e effects) {
	if e.endProof {
		w.closeQuestions()
	}
	if e.endPeeks {
		w.closePeeks()
	}
	if e.endAudit {
		w.closeAudit()
	}
	if (e.endProof || e.endAudit) && w.state.proof.stage == idle && w.state.audit.stage == noAudit {
		w.sink.Remember(false)
	}
	if e.rest != nil {
		again := w.again
		if errors.Is(e.rest, errNoRoom) {
			again = w.elsewhere
		}
		w.alarms[proofAlarm] = time.Now().Add(max(again.NextBackOff(), time.Until(w.until)))
	}
}

// approach makes the feed's next request, or begins the pause before it.
func (w *Watcher) approach(ctx context.Context, e effects) {
	w.progress = w.progress || e.advance || e.publish == granted || e.publish == ungranted
	w.reconnect = w.reconnect || e.reconnect
	switch {
	case e.pause != noPause:
		w.endProgress(false)
		w.pause(e.pause)
	case e.request != noRequest:
		if w.reconnect && w.opts.Reconnect != nil {
			// Not before the pause: what was cancelled has left the connection by now,
			// so that it can be seen to be idle.
			w.opts.Reconnect()
		}
		w.reconnect = false
		w.ask(ctx, e.request)
		w.setLimit()
	case e.publish != notPublished, e.follow, e.extend:
		w.setLimit()
	}
}

// ready takes note of a proof, and of what the sink said to it.
func (w *Watcher) ready(asOf time.Time, wait time.Duration) {
	w.hear()
	if asOf.After(w.provenAt) {
		w.provenAt = asOf
	}
	w.alarms[proofAlarm], w.alarms[clockAlarm] = noAlarm, noAlarm
	if bound := w.opts.MaxStaleness; bound != 0 {
		w.alarms[proofAlarm] = w.provenAt.Add(proofInterval(bound))
		w.alarms[clockAlarm] = w.nextLook()
	}
	if w.waits = wait != 0; w.waits {
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
func (w *Watcher) pause(p pause) {
	if w.progress {
		w.retry.Reset()
		w.progress = false
	}
	w.main.hangUp()
	delay := rand.N(w.opts.MinBackoff/4 + 1)
	if p == backOff {
		delay = w.retry.NextBackOff()
	}
	w.set(limitAlarm, max(delay, time.Until(w.until)))
}

// leaveAlone takes note that the server asks to be left alone for a time. It is made a
// little longer, so that those that it asks do not come back together.
func (w *Watcher) leaveAlone(err error) {
	if d := retryAfter(err); d > 0 && err != w.asks {
		w.asks, w.until = err, time.Now().Add(d+rand.N(d/4+1))
	}
}

// setLimit starts the clock for what the phase waits for.
func (w *Watcher) setLimit() {
	f, own := &w.state.feed, w.main.length+watchSlack-time.Since(w.main.askedAt)
	switch {
	case f.phase == streaming:
		// For as long as initial events come, but no longer than any watch.
		w.set(limitAlarm, min(w.opts.InitialEventsTimeout, own))
	case f.phase == watching:
		w.set(limitAlarm, own)
	case f.phase == opening && !f.late && f.denied != watchVerb:
		w.set(limitAlarm, min(openGrace, w.opts.RequestTimeout))
	default:
		w.set(limitAlarm, w.opts.RequestTimeout)
		w.alarms[limitAlarm] = w.main.askedAt.Add(w.opts.RequestTimeout)
	}
}

// note takes a failure down, before anybody hears of what follows from it.
func (w *Watcher) note(ctx context.Context, o observation) {
	if o.err == nil || o.kind == silent || o.kind == stale {
		return // the revocation says it
	}
	w.leaveAlone(o.err)
	klog.FromContext(ctx).V(2).Info("Attempt failed", "phase", w.state.feed.phase.String(), "err", o.err)
	if w.state.feed.phase == streaming && rejectsWatchList(o.err) {
		return // nothing is wrong, and the status has why it is listed instead
	}
	w.status.update(func(s *Status) {
		s.Failures++
		s.Counts.Failures++
		s.LastError, s.LastErrorAt = o.err, time.Now()
		s.LastReason = invalidation.Default(invalidation.Observation{Seen: sight(o.err), Err: o.err}).Revoke
	})
}
