package watcher

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-safestore/kube-safestore/internal/versions"
)

// The requests of a proof go through the store's own source, so that selectors,
// namespaces, transports and impersonation are those of the main stream; their time
// limits are the proof's.

// inquire carries out what a proof asks of the server.
func (w *Watcher) inquire(ctx context.Context, q question) {
	switch q {
	case askLatest:
		if w.needsPeekAtOnce() {
			w.openPeek(ctx)
		}
		w.asked = w.number()
		if time.Now().Before(w.until) {
			w.told = append(w.told, observation{kind: proofFailed, verb: listVerb, err: w.asks})
			return
		}
		w.side.ask(w.briefly(ctx), &w.calls, listVerb, w.list(w.source, metav1.ListOptions{Limit: 1}))
	case askPeek:
		w.openPeek(ctx)
	}
}

func (w *Watcher) briefly(ctx context.Context) context.Context {
	return briefly{ctx, time.Now().Add(room(w.opts.MaxStaleness))}
}

// needsPeekAtOnce reports whether a bookmark for a peek that is opened when it is needed
// would come too late for the bound.
func (w *Watcher) needsPeekAtOnce() bool {
	return w.state.proof.tight && !w.state.proof.small && w.opts.MaxStaleness*4/5 < verdictTime
}

// closeQuestions ends what a proof has asked. The peeks of a tight proof go on: the
// bookmark of one may serve the next proof.
func (w *Watcher) closeQuestions() {
	w.side.hangUp()
	w.alarms[stageAlarm] = noAlarm
	w.sample = Sample{}
	if !w.state.proof.tight {
		w.closePeeks()
	}
}

// replied takes the answer to the question for the server's version, and compares what
// it brings with the set. What is in the answer and newer than the set is awaited, as if
// a peek had brought it.
func (w *Watcher) replied(a answer) observation {
	w.side.answers = nil
	if a.err != nil {
		err := w.side.trace.crowded(named(listVerb, w.side.trace.reached(), a.err), w.plain)
		return observation{kind: proofFailed, verb: listVerb, err: err}
	}
	sample, first, err := sampleOf(a.list)
	if err != nil {
		return observation{kind: proofFailed, verb: listVerb, err: &unusable{err}}
	}
	w.sample = sample
	o := observation{kind: proofListed, version: sample.Version}
	if versions.Resumable(sample.Version) {
		o.content = w.sink.Check(sample, w.state.marks.complete)
	}
	if o.content == Awaits {
		w.await(first)
	}
	return o
}

// sampleOf returns what a list of one object shows.
func sampleOf(list runtime.Object) (sample Sample, first runtime.Object, err error) {
	page, err := meta.ListAccessor(list)
	if err != nil {
		return sample, nil, fmt.Errorf("%T is no list", list)
	}
	sample = Sample{Version: page.GetResourceVersion(), Count: -1}
	shown := int64(0)
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		if shown++; shown > 1 {
			return nil // the server ignores the limit
		}
		first = obj
		sample.Object, err = meta.Accessor(obj)
		return err
	})
	if err != nil {
		return sample, nil, fmt.Errorf("%T has items that are no objects", list)
	}
	if left := page.GetRemainingItemCount(); left != nil && *left >= 0 {
		sample.Count = shown + *left
	} else if page.GetContinue() == "" {
		sample.Count = shown
	}
	return sample, first, nil
}

// checked returns what the set, having come to a version, says to the last answer. It
// is worth a look where the versions are the same.
func (w *Watcher) checked(version string) Agreement {
	if w.sample.Version == "" || w.sample.Version != version {
		return Agrees
	}
	return w.sink.Check(w.sample, version)
}
