package cluster

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// tailLines is how much of a server's output is kept: enough for the reason of
// a failed start, which stands at the end.
const tailLines = 60

// tail keeps the last lines written to it and passes everything on to next, if
// there is one. It is safe for concurrent use: a server's two output streams
// write to the same tail.
type tail struct {
	next io.Writer

	mu      sync.Mutex
	lines   []string
	partial []byte // of the line that has not ended yet
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial = append(t.partial, p...)
	for {
		line, rest, ended := bytes.Cut(t.partial, []byte("\n"))
		if !ended {
			break
		}
		t.lines = append(t.lines, string(line))
		t.partial = rest
	}
	if extra := len(t.lines) - tailLines; extra > 0 {
		t.lines = append([]string(nil), t.lines[extra:]...)
	}
	if t.next != nil {
		return t.next.Write(p)
	}
	return len(p), nil
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
