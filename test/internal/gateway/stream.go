package gateway

import (
	"bufio"
	"errors"
	"io"
)

// stream is what an open watch brings.
type stream struct {
	gateway *Gateway
	from    io.ReadCloser
	gone    <-chan struct{} // the client is

	// Under the gateway's lock.
	stalled chan struct{} // closed when it no longer is; nil if it is not
	ended   bool          // by the gateway
}

var errGone = errors.New("the client has given up")

func (s *stream) stallLocked() {
	if s.stalled == nil {
		s.stalled = make(chan struct{})
	}
}

// Read implements io.Reader. What has come is held back while the stream is
// stalled, its end too.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	for {
		s.gateway.mu.Lock()
		stalled, ended := s.stalled, s.ended
		s.gateway.mu.Unlock()
		switch {
		case ended:
			return 0, io.EOF
		case stalled == nil:
			return n, err
		}
		select {
		case <-stalled:
		case <-s.gone:
			return 0, errGone
		}
	}
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.gateway.mu.Lock()
	if s.gateway.streams[s] {
		delete(s.gateway.streams, s)
		defer s.gateway.open.Done()
	}
	s.gateway.mu.Unlock()
	return s.from.Close()
}

// edited is a stream of events in JSON, one a line, each of which is edited.
type edited struct {
	lines *bufio.Reader
	from  io.Closer
	edit  EventEditor
	rest  []byte // of a line that has been read
	ended bool
}

var bookmark = []byte(`{"type":"BOOKMARK"`)

func (e *edited) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.ended {
			return 0, io.EOF
		}
		line, err := e.lines.ReadBytes('\n')
		if len(line) > 0 {
			var more bool
			e.rest, more = e.edit(line)
			e.ended = !more
		}
		if err != nil && len(e.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *edited) Close() error { return e.from.Close() }
