package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// call calls the reconcile function, in a goroutine of its own: one that ends it, as a
// failed assertion of a test does, fails with errGoexit and takes no worker with it.
func (c *Controller) call(ctx context.Context, req Request) (result Result, err error) {
	c.counts.running.Add(1)
	defer c.counts.running.Add(-1)
	returned := make(chan struct{})
	err = errGoexit
	go func() {
		defer close(returned)
		if c.opts.RecoverPanics {
			defer func() {
				if value := recover(); value != nil {
					err = &panicError{value, debug.Stack()}
				}
			}()
		}
		result, err = c.reconcile(ctx, req)
	}()
	<-returned
	return result, err
}

var errGoexit = errors.New("reconcile ended its goroutine")

// panicError is how work fails that has panicked. It does not show the value, which
// may quote an object, unless it is an error of the Go runtime.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	if err, ok := e.value.(runtime.Error); ok {
		return fmt.Sprintf("reconcile panicked: %v", err)
	}
	return fmt.Sprintf("reconcile panicked with a %T", e.value)
}

func isPanic(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}

func logFailure(log klog.Logger, err error) {
	if panicked, ok := errors.AsType[*panicError](err); ok {
		log = log.WithValues("stack", string(panicked.stack))
	}
	log.Error(err, "Reconcile failed")
}
