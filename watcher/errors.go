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

var (
	errBrief       = errors.New("the watch ended three times within a second and with nothing in it")
	errDropped     = errors.New("the request for a watch was not answered")
	errNoMarker    = errors.New("the WatchList ended without its end marker")
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
	limit time.Duration
}

func (e *noAnswer) Error() string { return fmt.Sprintf("%s: nothing came for %v", e.what, e.limit) }

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

// sight tells what an error is a sign of. What is neither the server's answer
// nor a failure to understand it is trouble on the way.
func sight(err error) invalidation.Sighting {
	var bad *unusable
	switch {
	case isExpired(err), isTooLarge(err):
		return invalidation.VersionExpired
	case errors.Is(err, ErrOutOfOrder):
		return invalidation.VersionRewound
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

// isServerFault reports whether the server failed while it served a watch.
func isServerFault(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// retryAfter returns how long the server asks to be left alone.
func retryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
