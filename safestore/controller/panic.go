package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// call calls the reconcile function.
func (c *Controller) call(ctx context.Context, req Request) (result Result, err error) {
	if c.opts.RecoverPanics {
		defer func() {
			if value := recover(); value != nil {
				err = &panicError{value, debug.Stack()}
			}
		}()
	}
	return c.reconcile(ctx, req)
}

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
