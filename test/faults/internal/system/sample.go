package system

import (
	"time"

	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
)

// Sample is one read, and what had been asked of the server until then.
type Sample struct {
	// At is when the read began, in nanoseconds of the Unix epoch.
	At int64 `json:"at"`

	// Good says that the answer was served as good, and State what it was.
	Good  bool        `json:"good"`
	State truth.State `json:"state"`

	// Generation is SafeStore's. Reason is why there was no good answer, in one
	// word; Error says more, and is left out where it is as before.
	Generation uint64 `json:"generation,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Error      string `json:"error,omitempty"`

	// Revoked is why the generation before ended, also if the answer is good.
	Revoked string `json:"revoked,omitempty"`

	// Requests and Sets count what was asked of the server: everything, and lists
	// and streams of the whole set.
	Requests int `json:"requests"`
	Sets     int `json:"sets"`
}

// Time is when the read began.
func (s Sample) Time() time.Time { return time.Unix(0, s.At) }

// Left is what a cache leaves behind.
type Left struct {
	// Heap is what is alive of the heap, beyond what was before the cache was
	// started: at the end of the run, and after the cache was stopped. In bytes.
	Heap, HeapLeft int64
	// Goroutines are those that are left after the cache was stopped.
	Goroutines int
	// Stacks are theirs; empty if there are none.
	Stacks string `json:",omitempty"`
}

// line is what a process writes, one JSON object a line.
type line struct {
	Sample *Sample `json:"sample,omitempty"`
	Action *Sample `json:"action,omitempty"`
	Left   *Left   `json:"left,omitempty"`
}
