package watcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// isUndecodable reports whether err comes from decoding an answer or an event.
func isUndecodable(err error) bool {
	var jsonType *json.UnmarshalTypeError
	return apierrors.HasStatusCause(err, "ClientWatchDecoding") || // client-go's stream decoder
		errors.As(err, &jsonType) ||
		runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) ||
		runtime.IsStrictDecodingError(err) ||
		strings.HasPrefix(err.Error(), "proto: ")
}

// withoutContents returns err, or, if it comes from decoding, an error that says
// what can be said without showing what was decoded: it may have been a Secret.
func withoutContents(err error) error {
	if err == nil || !isUndecodable(err) {
		return err
	}
	return &unusable{fmt.Errorf("something received cannot be decoded: %s", complaint(err.Error()))}
}

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
