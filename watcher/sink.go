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
	// Discard gives up the set being built, if one is.
	Discard()
	// Publish makes the set being built the current one: it is complete at that
	// resource version. If it is granted, it is its own proof, and the sink is ready
	// with it; else the sink waits for Prove. If the sink would rather not be ready
	// yet, it returns how long it wants to wait for another proof.
	Publish(version string, proof Proof, grant bool) (wait time.Duration)
	// Prove brings a proof of the current set. It returns what Publish does.
	Prove(proof Proof) (wait time.Duration)

	// Apply changes the current set by one event: Added, Modified or Deleted, from a
	// watch that has brought everything up to the version streamed. It fails with
	// [ErrOutOfOrder] for an event from before that, with [ErrContradicts] for one from
	// before the set was shown to be complete and that it does not reflect, with
	// [ErrTooLarge] for one that there is no room for, and with any other error for one
	// that cannot be applied. What the set reflects already is passed over.
	Apply(event watch.EventType, obj runtime.Object, streamed string) error
	// Advance says that the current set is also complete at this later version.
	Advance(version string)

	// Remember says whether to take note of what Apply deletes from here on, for the
	// methods that follow. What was noted before is forgotten.
	Remember(deletions bool)
	// Reflects reports whether the current set is at least as new as this event.
	Reflects(event watch.EventType, obj runtime.Object) bool
	// Check compares the current set, complete at a version, with what a consistent
	// list of the server's shows: its own version, one of its objects, nil if it has
	// none, and how many there are, negative if that is not known.
	Check(list Sample, version string) Agreement
	// BeginAudit begins to collect what an audit lists. An audit begun before is
	// discarded.
	BeginAudit()
	// Audit takes note of an object of the audit, which may be of a metadata client. It
	// fails if that is no object.
	Audit(obj runtime.Object) error
	// Compare compares the current set, complete at a version, with what the audit
	// listed at its own version, and says what differs. It may be called again.
	Compare(listed, version string) (Agreement, error)
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

// Sample is what a list of one object shows of a collection.
type Sample struct {
	// Version is the list's resource version.
	Version string
	// Object is the first object, nil if there is none.
	Object metav1.Object
	// Count is how many objects there are, negative if the list does not say.
	Count int64
}

// Agreement is what comparing a list of the server's with a set came to.
type Agreement int

// What a comparison can come to, in the order of what it takes to find out more.
const (
	// Agrees: nothing differs that could be compared.
	Agrees Agreement = iota
	// Awaits: what differs is newer than the set, and is still to come.
	Awaits
	// Contradicts: they differ about a version that the set is complete at.
	Contradicts
	// Undecided: what differs was changed meanwhile, and versions do not tell which is
	// newer.
	Undecided
)
