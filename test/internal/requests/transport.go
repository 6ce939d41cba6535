package requests

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// transport is a RoundTripper that client-go can look behind.
type transport struct {
	next   http.RoundTripper
	handle func(*http.Request) (*http.Response, error)
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.handle(r) }

// WrappedRoundTripper is how client-go finds the connections to close.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// What the body of an answer is searched for. Both words are the same in JSON
// and in protobuf; objects of tests must not contain them.
var (
	expired   = []byte(metav1.StatusReasonExpired)
	endMarker = []byte(metav1.InitialEventsAnnotationKey)
)

// body reads the answer along with the client.
type body struct {
	io.ReadCloser
	log     *Log
	request *Request
	tail    []byte // of what was read before, for a word that is cut in two
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	text := append(b.tail, p[:n]...)
	isExpired := b.request.Kind != Other && bytes.Contains(text, expired)
	isComplete := b.request.Kind == WatchList && bytes.Contains(text, endMarker) ||
		b.request.Kind == List && errors.Is(err, io.EOF)
	b.tail = append([]byte(nil), text[max(0, len(text)-len(endMarker)+1):]...)
	if isExpired || isComplete || err != nil {
		b.log.change(func() {
			b.request.Expired = b.request.Expired || isExpired
			b.request.Complete = b.request.Complete || isComplete && !b.request.Failed()
			b.request.Over = b.request.Over || err != nil
		})
	}
	return n, err
}

func (b *body) Close() error {
	b.log.change(func() { b.request.Over = true })
	return b.ReadCloser.Close()
}
