package safestore

import (
	"encoding/json"
	"fmt"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// limits are what a set may not outgrow (C42); zero is no limit.
type limits struct {
	objects int
	bytes   int64
}

// check returns an error if a set of this size is too large.
func (l limits) check(objects int, bytes int64) error {
	if l.objects > 0 && objects > l.objects {
		return fmt.Errorf("%w: it has more than %d objects", watcher.ErrTooLarge, l.objects)
	}
	if l.bytes > 0 && bytes > l.bytes {
		return fmt.Errorf("%w: its objects have more than %d bytes", watcher.ErrTooLarge, l.bytes)
	}
	return nil
}

// size estimates the bytes of an object, if there is a limit to them, by its
// encoded form: as protobuf where its type knows that, else as JSON.
func (l limits) size(obj Object) int64 {
	if l.bytes == 0 {
		return 0
	}
	if sized, ok := obj.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	encoded, err := json.Marshal(obj)
	if err != nil {
		return 0 // it came from JSON
	}
	return int64(len(encoded))
}
