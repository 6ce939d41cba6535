package faults

import (
	"context"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// Fault is one thing that goes wrong.
type Fault struct {
	// Name is a word for it, for -run.
	Name string
	// Injects says what is done, and Right what a safe cache does about it.
	Injects, Right string

	// Own says that the fault breaks servers, and gets a cluster of its own.
	Own bool
	// AtStart says that the fault is there before the caches are started.
	AtStart bool
	// Interval is the time between two reads. Zero means 20 milliseconds.
	Interval time.Duration
	// Heals is how long a cache may take to be right again after the fault is over.
	// Zero means 45 seconds: the longest pause between attempts, and a proof.
	Heals time.Duration

	// Least is how long the window must be at least for the fault to be one.
	Least time.Duration

	// Expect is what SafeStore has to say.
	Expect Expect

	// Prepare sets up how the caches reach the server, and what they cache, if it is
	// not ConfigMaps through a gateway. May be nil.
	Prepare func(ctx context.Context, s *Stage) error
	// Inject does it. It returns when the fault is over and all is well again but
	// for the caches.
	Inject func(ctx context.Context, s *Stage) error
}

// Expect is what SafeStore has to say about a fault.
type Expect struct {
	// Reasons are those that are right, for a fault about which something has to be
	// said or may be. Closed and Requested are never among them by themselves.
	Reasons []invalidation.Reason
	// Told says that it must be said: that reads go on succeeding is wrong.
	Told bool
	// Steady says that no read may fail.
	Steady bool
	// Meanwhile says that the store has to be right again before the fault is over.
	Meanwhile bool
}

// All returns the faults, in the order of the matrix.
func All() []Fault {
	return []Fault{
		// The way to the server.
		stalledStream(), blackHole(), halfOpen(), resets(), trickle(), flapping(),
		// The server, and what is behind it.
		apiRestart(), apiDown(), etcdStopped(), etcdCompacted(), etcdRestored(), laggingServer(),
		// What the server says no to.
		rightWithdrawn(), credentialsRotated(), tooManyRequests(), serverErrors(),
		// What is cached.
		definitionDeleted(), versionSwitched(), conversionFails(), namespaceDeleted(), manyObjects(),
		// How it is told.
		truncatedFrames(), garbledFrames(), endMarkerMissing(), endMarkerCloses(), endMarkerStripped(),
		bookmarksStripped(), timeoutsIgnored(), closedEverySecond(), continueExpires(),
		// Who asks.
		processStopped(), consumerBlocks(), consumerPanics(),
	}
}
