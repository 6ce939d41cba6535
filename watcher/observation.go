package watcher

import "time"

// observation is one thing that happened, as the state machine sees it: what
// the server sent has already been handed to the Sink.
type observation struct {
	kind

	// version is the resource version that came with it.
	version string
	// next is the continue token, for pages; empty on the last one.
	next string
	// live says, for initialAdded, that something has just happened to the object.
	live bool
	// brief says, for streamEnded, that the watch lived for less than a second
	// and brought nothing (C32).
	brief bool
	// dropped says, for streamEnded, that it was over as soon as it was open, long
	// after it was asked for: what client-go makes of requests that are not answered.
	dropped bool
	// long says, for streamEnded, that the watch had lived for a second or more.
	long bool
	// timely says, for streamEnded, that the watch had lived as long as it was
	// asked for.
	timely bool
	// err is what failed.
	err error
}

// kind is what happened.
type kind int

const (
	pageListed   kind = iota // a page of the list is in the set being built
	streamOpened             // the server accepted the watch
	initialAdded             // an event of a WatchList is in the set being built
	initialEnd               // the WatchList's end marker: the set is complete
	changed                  // an event was applied
	bookmarked               // the server says that nothing changed up to a version
	streamEnded              // the watch was closed, without an error
	failed                   // a request or the watch failed, or its content did
	timedOut                 // the phase's limit passed
	waited                   // the backoff is over
	relistAsked              // the program wants the set listed again

	silent // nothing was heard for MaxSilence, from the stream or by a proof
	stale  // the newest proof is older than MaxStaleness

	// What a proof of freshness brings, proof.go.

	proofWanted  // by the schedule or by the program
	proofListed  // the server's current version
	proofMissed  // the second watch brought an event that the set does not reflect
	proofReached // the second watch has brought all up to a version
	proofEnded   // the second watch was closed, without an error
	proofFailed  // a request of the proof failed
	proofLate    // the stage of the proof took its time

	auditWanted   // by the schedule
	auditListed   // a page of the audit
	auditCompared // what was listed with the set: err says what differs
)

// briefWatch is how long a watch without content must live to count as one,
// from its request on: some proxies hold the headers back until there is
// content. client-go calls it a very short watch.
const briefWatch = time.Second
