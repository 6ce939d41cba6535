package wiretest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// List is a page of a list, as it is sent.
type List struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Metadata   metav1.ListMeta   `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// cursor is what is in a continue token.
type cursor struct {
	Version int64
	Skip    int // objects on the pages before: the truth at a version does not change
}

func (x *exchange) list() {
	s, opts := x.server, x.Options
	s.mu.Lock()
	truth, now, compacted := &s.truth, s.truth.version, s.truth.compacted
	if x.past != 0 {
		truth, now = truth.at(x.past), x.past
	}
	var from cursor
	var refusal *apierrors.StatusError
	switch {
	case opts.Continue != "":
		raw, err := base64.RawURLEncoding.DecodeString(opts.Continue)
		if err != nil || json.Unmarshal(raw, &from) != nil {
			refusal = apierrors.NewBadRequest("continue key is not valid")
		} else if from.Version < compacted {
			refusal = apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
		}
		truth = truth.at(from.Version)
	case opts.ResourceVersion != "" && opts.ResourceVersion != "0":
		switch version, err := s.truth.parse(opts.ResourceVersion); {
		case err != nil:
			refusal = apierrors.NewBadRequest("Invalid value: " + strconv.Quote(opts.ResourceVersion))
		case version > now:
			refusal = TooLargeResourceVersion(version, now)
		}
	}
	if refusal != nil {
		s.mu.Unlock()
		x.fail(refusal)
		return
	}
	all := truth.list(x.Resource, x.namespace)
	list := &List{APIVersion: x.kind.GroupVersion().String(), Kind: x.kind.Kind + "List", Items: []json.RawMessage{}}
	list.Metadata.ResourceVersion = truth.format(truth.version)
	all = all[min(from.Skip, len(all)):]
	if limit := int(opts.Limit); limit > 0 && limit < len(all) {
		left := int64(len(all) - limit)
		all = all[:limit]
		next := marshal(cursor{truth.version, from.Skip + limit})
		list.Metadata.Continue = base64.RawURLEncoding.EncodeToString(next)
		list.Metadata.RemainingItemCount = &left
	}
	for _, item := range all {
		list.Items = append(list.Items, item.raw)
	}
	s.mu.Unlock()
	for _, edit := range x.editList {
		edit(list)
	}
	x.send(http.StatusOK, nil, marshal(list))
}

// send answers with a whole body.
func (x *exchange) send(code int, header http.Header, body []byte) {
	x.w.Header().Set("Content-Type", "application/json")
	for name, values := range header {
		x.w.Header()[name] = values
	}
	x.w.WriteHeader(code)
	x.w.Write(body)
}

// fail answers with a Status.
func (x *exchange) fail(refusal *apierrors.StatusError) {
	status := statusOf(refusal)
	header := http.Header{}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	x.send(int(status.Code), header, marshal(status))
}

// statusOf returns the Status in an error, as it is sent.
func statusOf(err *apierrors.StatusError) metav1.Status {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// TooLargeResourceVersion is how a server refuses a version that it has not
// reached.
func TooLargeResourceVersion(asked, current int64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}
