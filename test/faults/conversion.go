package faults

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// conversionFails is somebody else's webhook (C22).
func conversionFails() Fault {
	webhook := &conversionWebhook{}
	return Fault{
		Name:    "conversion-webhook-fails",
		Injects: "The caches ask for a version that a conversion webhook makes of the stored one. The webhook fails, and open watches end.",
		Right:   "Reads fail, within the bound, for Stale, Stuck, Relist or BadData. When the webhook works again the store is ready again by itself.",
		Expect:  Expect{Reasons: []invalidation.Reason{invalidation.Stale, invalidation.Stuck, invalidation.Relist, invalidation.BadData}, Told: true},
		Prepare: func(ctx context.Context, s *Stage) error {
			if err := s.custom(ctx, older, webhook.start(s)); err != nil {
				return err
			}
			return s.ThroughGateway(s.Cluster.Config())
		},
		Inject: func(ctx context.Context, s *Stage) error {
			webhook.fails.Store(true)
			s.Gateway.End()
			err := s.Hold(ctx)
			webhook.fails.Store(false)
			return err
		},
	}
}

// conversionWebhook converts between versions that differ in nothing.
type conversionWebhook struct{ fails atomic.Bool }

// start returns what a definition says about the webhook.
func (w *conversionWebhook) start(s *Stage) map[string]any {
	server := httptest.NewUnstartedServer(w)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	s.Defer(func() error { server.CloseClientConnections(); server.Close(); return nil })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"url": server.URL, "caBundle": base64.StdEncoding.EncodeToString(ca)},
		},
	}
}

// conversionReview is apiextensions.k8s.io/v1 ConversionReview.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *struct {
		UID               string           `json:"uid"`
		DesiredAPIVersion string           `json:"desiredAPIVersion"`
		Objects           []map[string]any `json:"objects"`
	} `json:"request,omitempty"`
	Response *conversionResponse `json:"response,omitempty"`
}

type conversionResponse struct {
	UID              string           `json:"uid"`
	ConvertedObjects []map[string]any `json:"convertedObjects"`
	Result           metav1.Status    `json:"result"`
}

// ServeHTTP implements http.Handler.
func (w *conversionWebhook) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	var review conversionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(response, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &conversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	if w.fails.Load() {
		review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "the webhook is broken"}
	} else {
		for _, obj := range review.Request.Objects {
			obj["apiVersion"] = review.Request.DesiredAPIVersion
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, obj)
		}
	}
	review.Request = nil
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(review)
}
