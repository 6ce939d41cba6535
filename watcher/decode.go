package watcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// clientWatchDecoding is how client-go marks the errors of its stream decoder.
const clientWatchDecoding metav1.CauseType = "ClientWatchDecoding"

// isUndecodable reports whether err comes from decoding an answer or an event.
func isUndecodable(err error) bool {
	if apierrors.HasStatusCause(err, clientWatchDecoding) {
		// client-go says this of whatever ends a stream, also of a connection that
		// was lost ("http2: client connection lost"). Only the text tells.
		return undecoded.MatchString(err.Error())
	}
	var jsonType *json.UnmarshalTypeError
	return errors.As(err, &jsonType) ||
		runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) ||
		runtime.IsStrictDecodingError(err) ||
		strings.HasPrefix(err.Error(), "proto: ")
}

// named says of an error which verb it was the answer to, and leaves out what was
// received. answered says that the server's answer had come: then what is neither a
// status nor trouble of the connection is about its contents.
func named(v verb, answered bool, err error) error {
	if answered && !isUndecodable(err) && !isStatusOrConnection(err) {
		err = &unusable{errors.New("something received cannot be decoded: it is no valid object")}
	}
	return fmt.Errorf("%v: %w", v, withoutContents(err))
}

// isStatusOrConnection reports whether err is the server's own status, or of the kinds
// that the network brings.
func isStatusOrConnection(err error) bool {
	var status apierrors.APIStatus
	var network net.Error
	var bad *unusable
	return errors.As(err, &status) || errors.As(err, &network) || errors.As(err, &bad) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "reading response body") // client-go's words
}

// undecoded is how client-go and apimachinery begin to say that a frame came
// through whole and cannot be decoded.
var undecoded = regexp.MustCompile(
	`unable to decode watch event|unable to decode to metav1|got invalid watch event type|cannot unmarshal|is missing in '`)

// withoutContents returns err, or, if it comes from decoding, an error that says
// what can be said without showing what was decoded: it may have been a Secret.
func withoutContents(err error) error {
	switch {
	case err == nil:
		return nil
	case !isUndecodable(err) && apierrors.HasStatusCause(err, clientWatchDecoding):
		lost := connection.FindString(err.Error())
		if lost == "" {
			return errGarbled
		}
		return fmt.Errorf("the watch was broken off: %s", lost)
	case !isUndecodable(err):
		return err
	}
	return &unusable{fmt.Errorf("something received cannot be decoded: %s", complaint(err.Error()))}
}

// connection is what is said of a lost connection, up to where it might quote
// anything.
var connection = regexp.MustCompile(`(?:http2?|net/http|stream error|read|write|unexpected EOF)\b[\w :/.,;>\[\]-]*|$`)

// complaint finds what a decoding error complains of, in its text: there is
// nothing else of one that comes through a stream. What does not have a known form
// may quote anything, and is left out.
func complaint(text string) string {
	for _, known := range complaints {
		if m := known.FindStringSubmatch(text); m != nil {
			return strings.Join(m[1:], "")
		}
	}
	return "it is no valid object"
}

var complaints = []*regexp.Regexp{
	regexp.MustCompile(`(cannot unmarshal \w+)(?: \S+)?( into Go struct field [\w.]+ of type [\w.*\[\]]+)`),
	regexp.MustCompile(`(Object '(?:Kind|apiVersion)' is missing)`),
	regexp.MustCompile(`(no kind \\?"\w+\\?" is registered for version \\?"[\w./]+\\?")`),
	regexp.MustCompile(`(got invalid watch event type: \w+)`),
}
