package watcher

// alive reports whether an observation is a sign of life: something that only a
// server that serves this store can bring about. This is the one place that says so.
//
// No signs of life are an error event, a time-out of our own, a connection that was
// cut, and an answer to a side request: a proof counts when it has succeeded, which
// the machine says with effects.proven, or with effects.heard where a proof has shown
// that the server is there although it could not prove anything.
func (s state) alive(o observation) bool {
	switch o.kind {
	case pageListed, initialAdded, initialEnd, changed, bookmarked:
		return true
	case streamOpened:
		// The watch before this one ended in the server's own time, and was resumed.
		// That one which was cut could be resumed is no sign: what cut it may have
		// accepted the next one too.
		return s.feed.timely
	default:
		return false
	}
}
