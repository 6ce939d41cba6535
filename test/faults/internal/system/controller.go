package system

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/safestore/controller"
)

// newController returns a controller over the store, which acts on what the snapshot
// of each of its requests shows, for as long as its work is not cut.
func (s *store[T]) newController(act func(Sample)) (*controller.Controller, error) {
	reconcile := func(ctx context.Context, req controller.Request) (controller.Result, error) {
		snapshot, err := s.In(req.Snapshot)
		if err != nil {
			return controller.Result{}, err
		}
		seen := Sample{At: time.Now().UnixNano()}
		s.show(snapshot, &seen)
		if ctx.Err() == nil {
			act(seen)
		}
		return controller.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	// With one worker, what it sees can be judged like reads, in the order in which it
	// acts.
	return controller.New("acting", reconcile, controller.Options{}, controller.For(s.Store))
}
