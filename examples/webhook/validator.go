package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// validator answers the API server's questions.
type validator struct {
	namespaces *safestore.Store[*corev1.Namespace]
}

// largest is how many bytes of a question are read: more than an object can have.
const largest = 8 << 20

// ServeHTTP answers with 503 what it cannot know: the failurePolicy of the webhook's
// configuration says what follows from that.
func (v *validator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largest)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "this is no AdmissionReview", http.StatusBadRequest)
		return
	}
	snapshot, err := v.namespaces.Snapshot()
	if err != nil {
		http.Error(w, "namespaces are not known at the moment", http.StatusServiceUnavailable)
		return
	}
	review.Response = decide(snapshot, review.Request)
	review.Response.UID = review.Request.UID
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // whoever asked has gone
}

// decide says yes or no. That there is no such namespace is as certain as what its
// labels are.
func decide(snapshot *safestore.Snapshot[*corev1.Namespace], request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	namespace, err := snapshot.Get(types.NamespacedName{Name: request.Namespace})
	switch {
	case apierrors.IsNotFound(err): // made within the bound: it cannot be frozen for long
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"the namespace is new to the webhook"}}
	case err != nil:
		return refuse(http.StatusInternalServerError, err.Error())
	case namespace.Labels["frozen"] == "true":
		return refuse(http.StatusForbidden, fmt.Sprintf("namespace %s is frozen", namespace.Name))
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func refuse(code int32, why string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: why}}
}
