package watcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// What each error is a sign of, in the dresses in which servers and client-go
// show it.
func TestClassification(t *testing.T) {
	status := func(s metav1.Status) error { return &apierrors.StatusError{ErrStatus: s} }
	tooLarge := func(s metav1.Status) error {
		s.Reason, s.Code = metav1.StatusReasonTimeout, http.StatusGatewayTimeout
		return status(s)
	}
	clientDecoding := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Thing"}
	for name, test := range map[string]struct {
		err  error
		seen invalidation.Sighting
	}{
		"expired":                  {apierrors.NewResourceExpired("x"), invalidation.VersionExpired},
		"expired, wrapped":         {fmt.Errorf("x: %w", apierrors.NewResourceExpired("x")), invalidation.VersionExpired},
		"gone, before 1.18":        {status(metav1.Status{Code: 410, Reason: metav1.StatusReasonGone}), invalidation.VersionExpired},
		"410 without reason":       {status(metav1.Status{Code: 410}), invalidation.VersionExpired},
		"watches that end at once": {errBrief, invalidation.VersionExpired},
		"watches that break again": {fmt.Errorf("%w: %w", errStillBroke, apierrors.NewInternalError(errSome)), invalidation.VersionExpired},
		"too large":                {tooLarge(metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}}), invalidation.VersionExpired},
		"too large, 1.17":          {tooLarge(metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "Too large resource version"}}}}), invalidation.VersionExpired},
		"too large, before":        {tooLarge(metav1.Status{Message: "Too large resource version: 5, current: 4"}), invalidation.VersionExpired},
		"another time-out":         {tooLarge(metav1.Status{Message: "etcd"}), invalidation.StreamBroken},
		"out of order":             {fmt.Errorf("x: %w", ErrOutOfOrder), invalidation.VersionRewound},
		"cannot be applied":        {&unusable{errSome}, invalidation.NotUsable},
		"over a limit":             {&unusable{fmt.Errorf("x: %w", ErrTooLarge)}, invalidation.SetTooLarge},
		"404 in what is unusable":  {&unusable{apierrors.NewNotFound(configMaps, "a")}, invalidation.NotUsable},
		"field of another type":    {fmt.Errorf("x: %w", &json.UnmarshalTypeError{Value: "number"}), invalidation.NotUsable},
		"undecodable event":        {apierrors.FromObject(clientDecoding.AsObject(errors.New("unable to decode watch event: no"))), invalidation.NotUsable},
		"lost connection":          {apierrors.FromObject(clientDecoding.AsObject(errors.New("http2: client connection lost"))), invalidation.StreamBroken},
		"unknown kind":             {runtime.NewNotRegisteredErrForKind("s", kind), invalidation.NotUsable},
		"no kind":                  {runtime.NewMissingKindErr("{}"), invalidation.NotUsable},
		"no version":               {runtime.NewMissingVersionErr("{}"), invalidation.NotUsable},
		"unknown field":            {runtime.NewStrictDecodingError([]error{errSome}), invalidation.NotUsable},
		"protobuf":                 {errors.New("proto: illegal wireType 7"), invalidation.NotUsable},
		"401":                      {apierrors.NewUnauthorized("x"), invalidation.NotKnown},
		"401 without reason":       {status(metav1.Status{Code: 401}), invalidation.NotKnown},
		"403":                      {apierrors.NewForbidden(configMaps, "", errSome), invalidation.NotAllowed},
		"404":                      {apierrors.NewNotFound(configMaps, ""), invalidation.NotServed},
		"404 of a mux":             {apierrors.NewGenericServerResponse(404, "list", configMaps, "", "404 page not found", 0, true), invalidation.NotServed},
		"405":                      {apierrors.NewMethodNotSupported(configMaps, "watch"), invalidation.NotWatchable},
		"429":                      {apierrors.NewTooManyRequests("x", 1), invalidation.StreamBroken},
		"500":                      {apierrors.NewInternalError(errSome), invalidation.StreamBroken},
		"503":                      {apierrors.NewServiceUnavailable("x"), invalidation.StreamBroken},
		"504":                      {apierrors.NewTimeoutError("x", 1), invalidation.StreamBroken},
		"connection refused":       {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), invalidation.StreamBroken},
		"connection cut":           {io.ErrUnexpectedEOF, invalidation.StreamBroken},
		"deadline":                 {context.DeadlineExceeded, invalidation.StreamBroken},
		"no answer":                {&noAnswer{"listing", delay{"nothing came", time.Minute}}, invalidation.StreamBroken},
		"anything":                 {errSome, invalidation.StreamBroken},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.seen, sight(test.err)) })
	}
}

// A WatchList that is refused for being one is followed by LIST; other refusals
// would come to a LIST as well.
func TestWhoRefusesWatchList(t *testing.T) {
	for _, err := range []error{
		apierrors.NewInvalid(schema.GroupKind{}, "", nil),
		apierrors.NewBadRequest("x"),
		apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", configMaps, "", "", 0, true),
		apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", configMaps, "", "", 0, true),
	} {
		assert.True(t, rejectsWatchList(err), "%v", err)
	}
	for _, err := range []error{
		errSome,
		apierrors.NewForbidden(configMaps, "", errSome),
		apierrors.NewInternalError(errSome),
		apierrors.NewTooManyRequests("x", 1),
		apierrors.NewResourceExpired("x"),
	} {
		assert.False(t, rejectsWatchList(err), "%v", err)
	}
}

func TestServerFaults(t *testing.T) {
	assert.True(t, isServerFault(apierrors.NewInternalError(errSome)))
	assert.True(t, isServerFault(fmt.Errorf("x: %w", apierrors.NewServiceUnavailable("x"))))
	assert.False(t, isServerFault(apierrors.NewTooManyRequests("x", 1)))
	assert.False(t, isServerFault(errSome))
}

func TestRetryAfter(t *testing.T) {
	assert.Equal(t, 7*time.Second, retryAfter(apierrors.NewTooManyRequests("x", 7)))
	assert.Equal(t, 7*time.Second, retryAfter(fmt.Errorf("x: %w", apierrors.NewTooManyRequests("x", 7))))
	assert.Zero(t, retryAfter(apierrors.NewInternalError(errSome)))
	assert.Zero(t, retryAfter(errSome))
}
