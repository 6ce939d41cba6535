package watcher

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// Proof says that a set holds everything the server had committed at a moment.
type Proof struct {
	// AsOf is that moment: when the proof, or the set itself, was asked for.
	AsOf time.Time
	// Number grows with each proof or set that is asked for. See [Watcher.Prove].
	Number uint64
}

// Sink is the writing side of a store. All its methods are called from the
// goroutine of [Watcher.Run], in the order in which things were seen.
type Sink interface {
	// Begin starts a new set, built aside. A set begun before and not published
	// is discarded.
	Begin()
	// Build changes the set being built: Added and Modified put the object into
	// it, Deleted takes it out. An error means that it cannot be applied, so that
	// the set cannot become complete; with [ErrTooLarge], that there is no room.
	Build(event watch.EventType, obj runtime.Object) error
	// Publish makes the set being built the current one: it is complete at that
	// resource version, and its own proof. If the sink would rather not be ready
	// yet, it returns how long it wants to wait for another proof.
	Publish(version string, proof Proof) (wait time.Duration)
	// Prove brings a proof of the current set. It returns what Publish does.
	Prove(proof Proof) (wait time.Duration)

	// Apply changes the current set by one event: Added, Modified or Deleted. It
	// fails with [ErrOutOfOrder] for an event from before what the set reflects,
	// with [ErrTooLarge] for one that there is no room for, and with any other error
	// for one that cannot be applied.
	Apply(event watch.EventType, obj runtime.Object) error
	// Advance says that the current set is also complete at this later version.
	Advance(version string)

	// BeginAudit begins to collect what an audit lists, and to take note of what
	// Apply changes meanwhile. An audit begun before is discarded.
	BeginAudit()
	// Audit takes note of an object of the audit. It may be of a metadata client.
	Audit(obj metav1.Object)
	// Compare compares what the audit listed with the current set, except for what
	// Apply has changed since BeginAudit, and says what differs. It may be called
	// again.
	Compare() error
	// EndAudit forgets the audit.
	EndAudit()

	// Revoke carries out a decision that ends the current token, or drops the
	// data. The cause is what was seen, nil if there is nothing to add to the
	// reason.
	Revoke(decision invalidation.Decision, cause error)

	// Unordered says that resource versions from this source tell nothing about
	// age and equality, as with client-go's fake clientsets. It is called at most
	// once, before the first Publish.
	Unordered()
}
