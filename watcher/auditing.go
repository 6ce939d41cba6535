package watcher

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// audits carries out what an audit asks.
func (w *Watcher) audits(ctx context.Context, q auditQuestion) {
	switch q {
	case askFirstPage:
		w.sink.BeginAudit()
		w.auditing = w.number()
		w.askAuditPage(ctx, "")
	case askNextPage:
		w.askAuditPage(ctx, w.auditNext)
	case askCompare:
		content, err := w.sink.Compare(w.state.audit.version, w.state.marks.complete)
		w.told = append(w.told, observation{kind: auditCompared, content: content, err: err})
	}
}

// closeAudit forgets an audit.
func (w *Watcher) closeAudit() {
	w.auditSide.hangUp()
	w.sink.EndAudit()
	w.alarms[auditStageAlarm] = noAlarm
}

func (w *Watcher) askAuditPage(ctx context.Context, next string) {
	if time.Now().Before(w.until) {
		w.told = append(w.told, observation{kind: auditFailed, verb: listVerb, err: w.asks})
		return
	}
	opts := metav1.ListOptions{Continue: next}
	if w.opts.PageSize > 0 && w.state.audit.restarts < maxRestarts {
		opts.Limit = w.opts.PageSize
	}
	source := w.source
	if w.opts.AuditSource != nil && !w.state.proof.fake && w.state.marks.resumable() {
		source = w.opts.AuditSource // else contents are compared
	}
	w.auditSide.ask(ctx, &w.calls, listVerb, w.list(source, opts))
}

// audited takes a page of an audit.
func (w *Watcher) audited(a answer) observation {
	w.auditSide.answers = nil
	if a.err != nil {
		return observation{kind: auditFailed, verb: listVerb, err: named(listVerb, w.auditSide.trace.reached(), a.err)}
	}
	o, err := w.auditPage(a.list)
	if err != nil {
		return observation{kind: auditFailed, verb: listVerb, err: &unusable{err}}
	}
	return o
}

func (w *Watcher) auditPage(list runtime.Object) (o observation, err error) {
	page, err := meta.ListAccessor(list)
	if err != nil {
		return o, fmt.Errorf("%T is no list", list)
	}
	if err := meta.EachListItem(list, w.sink.Audit); err != nil {
		return o, fmt.Errorf("%T has items that are no objects", list)
	}
	w.auditNext = page.GetContinue()
	if isTruncated(page) {
		return o, errIncomplete
	}
	return observation{kind: auditListed, version: page.GetResourceVersion(), next: w.auditNext}, nil
}

// isTruncated reports whether a page says that more objects remain, and not how to get
// them.
func isTruncated(page metav1.ListInterface) bool {
	left := page.GetRemainingItemCount()
	return page.GetContinue() == "" && left != nil && *left > 0
}
