package wiretest

// Cut breaks all connections off. New ones can be made at once.
func (s *Server) Cut() { s.network.cut() }

// Down takes the server down: all connections break off, and new ones are
// refused until it is up.
func (s *Server) Down() {
	s.network.update(func() { s.network.down = true })
	s.network.cut()
}

// Up ends Down.
func (s *Server) Up() { s.network.update(func() { s.network.down = false }) }

// BlackHole lets nothing through any more, in either direction, and tells nobody:
// connections stay open, and attempts at new ones are not answered. What was sent
// arrives when light is let in again.
func (s *Server) BlackHole(dark bool) { s.network.update(func() { s.network.dark = dark }) }

// Stall lets nothing more come from the watches that are open now, until Resume.
// New watches, and everything else, work.
func (s *Server) Stall() { s.eachStream(func(st *stream) { st.stalled = true }) }

// Resume ends Stall: the watches go on where they were.
func (s *Server) Resume() { s.eachStream(func(st *stream) { st.stalled = false }) }

// Send sends frames on the watches that are open now.
func (s *Server) Send(frames ...[]byte) {
	s.eachStream(func(st *stream) { st.queue = append(st.queue, frames...) })
}

// End ends the watches that are open now in the regular way, after what there is
// to send.
func (s *Server) End() { s.eachStream(func(st *stream) { st.ended = true }) }

func (s *Server) eachStream(f func(*stream)) {
	s.update(func() {
		for _, st := range s.streams {
			f(st)
		}
	})
}
