package invalidation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Revocation is the end of one token: the cause of its context, and what
// not-ready errors carry. It is an error:
//
//   - errors.Is with a [Reason] tells why;
//   - errors.As finds what the Cause holds, such as the API status of a refusal,
//     but nothing of a cause that is an API NotFound error: whatever was absent,
//     it must not make a reader believe that an object is
//     (apierrors.IsNotFound is false);
//   - errors.Is with context.Canceled or context.DeadlineExceeded is true only if
//     the store's own context ended that way, never because a request to the
//     server timed out.
type Revocation struct {
	// Generation is the number of the token that ended.
	Generation uint64
	// Reason is why, in one word.
	Reason Reason
	// Cause is what was seen: the server's error, or the cause given by the
	// program. Nil if the reason says all.
	Cause error
	// Since is when the token ended.
	Since time.Time
	// ResourceVersion is the last one the store had reached, empty if none.
	ResourceVersion string
}

// Error says which generation ended, when, why, and what was seen.
func (r *Revocation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "generation %d revoked at %s: %s", r.Generation, r.Since.Format(time.RFC3339), string(r.Reason))
	if r.ResourceVersion != "" {
		fmt.Fprintf(&b, " (last resource version %s)", r.ResourceVersion)
	}
	if r.Cause != nil {
		fmt.Fprintf(&b, ": %v", r.Cause)
	}
	return b.String()
}

// Is implements the rules given at [Revocation] for errors.Is. There is no
// Unwrap: it would let the cause of a server's failure pass for something the
// reader did or asked.
func (r *Revocation) Is(target error) bool {
	switch target {
	case error(r.Reason):
		return true
	case context.Canceled, context.DeadlineExceeded:
		return r.Reason == Closed && errors.Is(r.Cause, target)
	default:
		return errors.Is(r.Cause, target)
	}
}

// As implements the rules given at [Revocation] for errors.As.
func (r *Revocation) As(target any) bool {
	return r.Cause != nil && !apierrors.IsNotFound(r.Cause) && errors.As(r.Cause, target)
}
