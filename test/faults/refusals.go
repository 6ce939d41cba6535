package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// tooManyRequests is a server that wants to be asked less (C16).
func tooManyRequests() Fault {
	return Fault{
		Name:    "too-many-requests",
		Injects: "Open watches end, and every request is answered with 429 and Retry-After.",
		Right:   "Within the bound reads fail, for Stale or Stuck. Attempts are paced, and respect what the server asks for.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck}, Told: true},
		Inject:  refuse(apierrors.NewTooManyRequests("the server is busy", 1)),
	}
}

// serverErrors is a server that cannot (C8, C16).
func serverErrors() Fault {
	return Fault{
		Name:    "server-errors",
		Injects: "Open watches end, and every request is answered with 500.",
		Right:   "Within the bound reads fail, for Stale or Stuck. Attempts are paced.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck}, Told: true},
		Inject:  refuse(apierrors.NewInternalError(io.ErrUnexpectedEOF)),
	}
}

// refuse has every request answered with an error.
func refuse(with *apierrors.StatusError) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		s.Gateway.Answer(func(*http.Request) *http.Response { return refusal(with) })
		s.Gateway.End()
		err := s.Hold(ctx)
		s.Gateway.Answer(nil)
		return err
	}
}

// refusal is the answer of an API server that is an error.
func refusal(with *apierrors.StatusError) *http.Response {
	status := with.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, _ := json.Marshal(status) // of strings and numbers
	response := &http.Response{
		StatusCode: int(status.Code),
		Proto:      "HTTP/2.0", ProtoMajor: 2,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	if apierrors.IsTooManyRequests(with) {
		response.Header.Set("Retry-After", "1")
	}
	return response
}
