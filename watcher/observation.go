package watcher

import "time"

// observation is one thing that happened, as the state machine sees it: what
// the server sent has already been handed to the Sink. Fields that a kind does not
// name are zero.
type observation struct {
	kind

	// version is the resource version that came with it.
	version string
	// next is the continue token, for pages; empty on the last one.
	next string
	// live says, for initialAdded, that something has just happened to the object.
	live bool
	// fake says that the source is client-go's object tracker, behind its fake
	// clientsets: its versions tell nothing.
	fake bool
	// prompt says, for pageListed, that the server took no time to answer.
	prompt bool
	// small says, for the end of a set, that it comes in one page.
	small bool
	// implausible says, for the end of a set, that it has far less than the one
	// before it, or nothing at all: see Watcher.measured.
	implausible bool
	// end is how a watch ended, for streamEnded, and for failed while watching.
	end ending
	// verb is what was asked for, for failed and for the failures of a proof.
	verb verb
	// content is what comparing the answer with the set came to, for what a proof
	// brings and for events that bring the set to the version of its question.
	content Agreement
	// by is who wants a proof, for proofWanted and proofDue.
	by debts
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

	// What concerns the proof of freshness, proof.go.

	proofWanted  // somebody wants one
	proofDue     // the time for the next one, or for another try, has come
	proofListed  // the server's current version, and its first object
	proofMissed  // the peek brought an event that the set does not reflect
	proofCaught  // the set now reflects all that a proof has brought
	proofReached // the peek has brought everything up to a version
	proofEnded   // the peek was closed in its time, without an error
	proofFailed  // the question for the version failed
	peekFailed   // the peek failed, or was cut short
	proofLate    // the stage of the proof took its time

	// What concerns the audit, audit.go.

	auditWanted   // the schedule wants one
	auditListed   // a page of the audit
	auditCompared // what was listed was compared with the set
	auditFailed   // a request of the audit failed
	auditLate     // the stage of the audit took its time

	kinds // how many there are
)

// ending is how a watch ended.
type ending int

const (
	cut     ending = iota // before its time
	timely                // when the server was asked to end it
	abrupt                // the same, within a second
	empty                 // the same, and with nothing in it
	dropped               // it was over as soon as it was open, long after it was asked for
)

// verb is what a request asks for.
type verb int

const (
	noVerb verb = iota
	listVerb
	watchVerb
)

func (v verb) String() string { return [...]string{"", "list", "watch"}[v] }

// briefWatch is how long a watch without content must live to count as one,
// from its request on: some proxies hold the headers back until there is
// content. client-go calls it a very short watch.
const briefWatch = time.Second
