package watcher

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// ErrOutOfOrder is returned by [Sink.Apply] for an event that is older than what
// the set reflects: the server went back in time.
var ErrOutOfOrder = errors.New("older than what was seen before")

// ErrTooLarge is returned, wrapped, by [Sink.Build] and [Sink.Apply] when the set
// would grow over a limit of the program's.
var ErrTooLarge = errors.New("the set is too large")

// ErrContradicts is returned by [Sink.Apply] for an event about a version up to which
// the set was shown to be complete, and which it does not reflect.
var ErrContradicts = errors.New("the watch brought what the set should have had")

var (
	errBrief       = errors.New("the watch ended within a second and with nothing in it")
	errHasty       = errors.New("the watch ended shortly after it was opened")
	errDropped     = errors.New("the request for a watch was not answered")
	errNoMarker    = errors.New("the WatchList did not send its end marker")
	errBareMarker  = errors.New("the end marker of the WatchList has no resource version")
	errGarbled     = errors.New("what came from the watch cannot be parsed")
	errIncomplete  = errors.New("the list says that more objects remain, and not how to get them")
	errRestarted   = errors.New("the pages of the list are of different resource versions")
	errUnversioned = errors.New("the server gives no resource version to resume from")
	errPeekCut     = errors.New("the second watch of the proof was cut short")
	errMissed      = errors.New("the watch did not bring an event that the server has")
	errStillBroke  = errors.New("the watch from this resource version failed again and again")
)

// noAnswer is a request that took too long. It is not a context error, since it
// is no deadline of the program's.
type noAnswer struct {
	what  string
	delay delay
}

func (e *noAnswer) Error() string { return e.what + ": " + e.delay.String() }

// outOfTouch is having been without a sign of life or a proof for too long.
type outOfTouch struct {
	what  string
	limit time.Duration
	last  error // what the last attempt failed with, nil if it did not
}

func (e *outOfTouch) Error() string {
	if e.last == nil {
		return fmt.Sprintf("%s for %v", e.what, e.limit)
	}
	return fmt.Sprintf("%s for %v: %v", e.what, e.limit, e.last)
}

func (e *outOfTouch) Unwrap() error { return e.last }

// unusable is something received that cannot be decoded or applied.
type unusable struct{ err error }

func (e *unusable) Error() string { return e.err.Error() }
func (e *unusable) Unwrap() error { return e.err }

// unwatchable is the server's word that it does not watch what it lists.
type unwatchable struct{ err error }

func (e *unwatchable) Error() string { return e.err.Error() }
func (e *unwatchable) Unwrap() error { return e.err }

// sight tells what an error is a sign of. What is neither the server's answer
// nor a failure to understand it is trouble on the way.
func sight(err error) invalidation.Sighting {
	var bad *unusable
	var no *unwatchable
	switch {
	case errors.As(err, &no):
		return invalidation.NotWatchable
	case isExpired(err), isTooLarge(err):
		return invalidation.VersionExpired
	case errors.Is(err, ErrOutOfOrder):
		return invalidation.VersionRewound
	case errors.Is(err, ErrContradicts):
		return invalidation.SetDiverged
	case errors.Is(err, ErrTooLarge):
		return invalidation.SetTooLarge
	case errors.As(err, &bad), isUndecodable(err):
		return invalidation.NotUsable
	case apierrors.IsUnauthorized(err):
		return invalidation.NotKnown
	case apierrors.IsForbidden(err):
		return invalidation.NotAllowed
	case apierrors.IsNotFound(err):
		return invalidation.NotServed
	case apierrors.IsMethodNotSupported(err):
		return invalidation.NotWatchable
	default:
		return invalidation.StreamBroken
	}
}

// isExpired reports whether the server has forgotten the version. Servers before
// 1.18 answer Gone.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, errBrief) || errors.Is(err, errStillBroke)
}

// isTooLarge reports whether the server has not reached the version: it lags, or
// was rewound, and only a new list can tell. Servers before 1.18.6 say so in
// words alone.
func isTooLarge(err error) bool {
	const words = "Too large resource version"
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsTimeout(err) || !errors.As(err, &status) {
		return false
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Message == words {
				return true
			}
		}
	}
	return strings.Contains(status.Status().Message, words)
}

// rejectsWatchList reports whether the server refused the request for being a
// WatchList, which a plain LIST may not be.
func rejectsWatchList(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotAcceptable(err) ||
		apierrors.IsUnsupportedMediaType(err)
}

// isServerFault reports whether the server failed while it served a request.
func isServerFault(err error) bool { return statusCode(err) >= http.StatusInternalServerError }

// isAboutVersion reports whether what came of a watch may be about the version that it
// was to resume from: any answer but the known ones and that the server has no time.
// Servers say in many ways that a version is gone.
func isAboutVersion(err error) bool {
	if errors.Is(err, errGarbled) {
		return true
	}
	switch code := statusCode(err); code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable: // of a proxy, while no server is there
		return false
	default:
		return code >= http.StatusInternalServerError && !isTooLarge(err) && !isUndecodable(err)
	}
}

// isUnprocessable reports whether the server understood a watch, and does not do it.
func isUnprocessable(err error) bool { return statusCode(err) == http.StatusUnprocessableEntity }

// statusCode returns the code of an API status in err, zero if there is none.
func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

// maxRetryAfter is the longest wait that a server is granted when it asks for one.
const maxRetryAfter = 2 * time.Minute

// retryAfter returns how long the server asks to be left alone.
func retryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
