package safestore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/watcher"
)

var (
	// ErrNotReady is what every read fails with that cannot vouch for an answer, or
	// whose context is over. The error itself is a [*NotReadyError] and says why.
	ErrNotReady = errors.New("store is not ready")

	// ErrNotStarted is found beside ErrNotReady when Run has not been called.
	ErrNotStarted = errors.New("Run was not called")

	// ErrRunTwice is returned by every call of Run but the first: a store runs
	// once, and a program that needs another makes another.
	ErrRunTwice = errors.New("Run was called before")

	errNoSet = errors.New("no complete set")
)

// NotReadyError says why a read could not be answered. It is never an answer
// about an object: apierrors.IsNotFound is false for it, whatever the server
// said. errors.Is and errors.As find
//
//   - [ErrNotReady], always;
//   - [ErrNotStarted] before Run;
//   - the [*invalidation.Revocation] that ended the last token, its
//     [invalidation.Reason], and the API status in its cause;
//   - the API status of the last server error;
//   - context.Canceled or context.DeadlineExceeded, if the reader's context
//     ended the wait, or if the store was closed by such an end of its own.
type NotReadyError struct {
	// Store is the store's name.
	Store string
	// Generation is the token that is waited for, or the last one if the store
	// is closed.
	Generation uint64
	// Since is when the store was last ready, or when it was started.
	Since time.Time
	// Revocation is what ended the generation before; nil if there was none.
	Revocation *invalidation.Revocation
	// Phase is what the store is doing about it: "listing", "waiting to retry".
	Phase string
	// Progress is how far the set that is being listed has come; zero if none is.
	Progress watcher.Progress
	// LastError is what the last attempt at the server failed with; nil if it did
	// not.
	LastError error
	// Waited is how the reader's context ended, with its cause; nil if the reader
	// did not wait.
	Waited error
	// Ready says that the store is ready, under Generation, and only the reader's
	// context is over: see Waited. Of the other fields only Store is set then.
	Ready bool

	started bool
}

// Error tells the whole story in one line.
func (e *NotReadyError) Error() string {
	if e.Ready {
		return fmt.Sprintf("safestore: %s is ready, generation %d, and the context of its reader is over: %v", e.Store, e.Generation, e.Waited)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s, generation %d", ErrNotReady, e.Store, e.Generation)
	switch {
	case !e.started:
		fmt.Fprintf(&b, ": %v", ErrNotStarted)
	case e.Revocation != nil:
		fmt.Fprintf(&b, ": %v", e.Revocation)
	default:
		fmt.Fprintf(&b, ": never ready since its start at %s", e.Since.Format(time.RFC3339))
	}
	if e.Phase != "" {
		fmt.Fprintf(&b, "; %s", e.Phase)
	}
	if said := e.Progress.String(); said != "" {
		fmt.Fprintf(&b, ", %s", said)
	}
	if e.LastError != nil && !e.saidBy(e.Revocation) {
		fmt.Fprintf(&b, "; last error: %v", e.LastError)
	}
	if e.Waited != nil {
		fmt.Fprintf(&b, "; gave up waiting: %v", e.Waited)
	}
	return b.String()
}

// saidBy reports whether a revocation says already what the last error does.
func (e *NotReadyError) saidBy(r *invalidation.Revocation) bool {
	return r != nil && r.Cause != nil && r.Cause.Error() == e.LastError.Error()
}

// Unwrap gives errors.Is and errors.As what is listed at [NotReadyError].
func (e *NotReadyError) Unwrap() []error {
	all := []error{ErrNotReady}
	if !e.started {
		all = append(all, ErrNotStarted)
	}
	if e.Revocation != nil {
		all = append(all, e.Revocation)
	}
	if e.Waited != nil {
		all = append(all, quoted{e.Waited, true})
	}
	if e.LastError != nil {
		all = append(all, quoted{e.LastError, false})
	}
	return all
}

// quoted lets an error explain without being mistaken: its 404 is not the absence
// of an object, and only the reader's own context ends for the reader.
type quoted struct {
	err error
	own bool // it is of the reader's own context
}

func (q quoted) Error() string { return q.err.Error() }

func (q quoted) Is(target error) bool {
	if !q.own && (target == context.Canceled || target == context.DeadlineExceeded) {
		return false
	}
	return errors.Is(q.err, target)
}

func (q quoted) As(target any) bool {
	return !apierrors.IsNotFound(q.err) && errors.As(q.err, target)
}

// staleError is the cause of a revocation by a reader.
type staleError struct{ bound, age time.Duration }

func (e *staleError) Error() string {
	return fmt.Sprintf("newest proof of freshness is %v old, more than %v", e.age.Round(time.Millisecond), e.bound)
}
