package safestore

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Isolate returns a handler that does what f does, and fails where f panics, so
// that its subscription ends with an error and the program goes on (C38). The error
// says which change it was; the value of the panic, which may quote the object, is
// left out, unless it is an error of the Go runtime. It panics if f is nil.
func Isolate[T Object](f func(Change[T]) error) func(Change[T]) error {
	if f == nil {
		panic("safestore: Isolate with a nil function")
	}
	return func(c Change[T]) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{value: v, stack: debug.Stack()}
			}
		}()
		return f(c)
	}
}

// panicError is how an isolated handler fails that has panicked.
type panicError struct {
	value any
	stack []byte // for the log
}

func (e *panicError) Error() string {
	if err, ok := e.value.(runtime.Error); ok {
		return fmt.Sprintf("handler panicked: %v", err)
	}
	return fmt.Sprintf("handler panicked with a %T", e.value)
}
