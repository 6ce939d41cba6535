package invalidation

// Sighting is the kind of thing the watcher saw that may end readiness or calls
// for recovery. What a healthy stream brings (events, bookmarks) is no question
// for a policy.
type Sighting int

// What the watcher can see, with the server's answer in brackets where there is
// one.
const (
	StreamEnded    Sighting = iota // the watch ended as watches do, and resumes
	StreamBroken                   // connection lost, server down or overloaded [429, 5xx], no answer in time
	StreamStuck                    // the watch was silent and a proof of freshness failed, or found what the watch did not bring
	SetDiverged                    // an audit found a difference that the watch did not bring
	OutOfTouch                     // no sign of life or no proof for longer than is allowed
	VersionExpired                 // the resource version is gone [410], or the watch from it does not live
	VersionRewound                 // a lower resource version than one seen before
	NotKnown                       // the credentials are not accepted [401]
	NotAllowed                     // the right is missing [403]
	NotServed                      // the resource is not served [404]
	NotWatchable                   // the resource cannot be listed or watched [405, or 422 to a plain watch]
	NotUsable                      // an answer or event cannot be decoded or applied
	SetTooLarge                    // the set has grown over a limit of the program's
	RevokeCalled                   // the program asked for a revocation
	ContextEnded                   // the store's context ended
)

// Recovery is what the watcher does next, from least to most work. Whatever
// follows a failure is delayed by backoff.
type Recovery int

// The recoveries, in the order of what they cost.
const (
	None    Recovery = iota // go on as it is, or end with the context
	Rewatch                 // open a watch from the last resource version
	ListAll                 // list the whole set again
)

// Observation is one thing the watcher saw.
type Observation struct {
	// Seen is its kind.
	Seen Sighting
	// Err is the error seen, if the sighting is one.
	Err error
	// ResourceVersion is the one the store has reached, empty if none.
	ResourceVersion string
}

// Decision is what follows from an Observation. The zero Decision keeps the
// token and changes nothing.
type Decision struct {
	// Revoke is the reason for which the token ends; empty to keep it.
	Revoke Reason
	// Recovery is what the watcher does next.
	Recovery Recovery
	// Drop forgets the objects, so that not even stale reads return them.
	Drop bool
}

// Policy decides what an observation means. It must be a pure function. A nil
// Policy is [Default].
type Policy func(Observation) Decision

// Default is the policy of SafeStore: the answer to "what can end readiness,
// and what happens then?".
func Default(o Observation) Decision {
	switch o.Seen {
	case StreamEnded, StreamBroken:
		// Trouble on the way says nothing about the data: the stream resumes at
		// its version, and nothing is listed again.
		return Decision{Recovery: Rewatch}
	case StreamStuck:
		// The set is right up to its version. A new stream brings the rest, and a
		// proof makes the next token ready, without a list.
		return Decision{Revoke: Stuck, Recovery: Rewatch}
	case SetDiverged:
		return Decision{Revoke: Diverged, Recovery: ListAll}
	case OutOfTouch:
		return Decision{Revoke: Stale}
	case VersionExpired:
		return Decision{Revoke: Relist, Recovery: ListAll}
	case VersionRewound:
		return Decision{Revoke: Rewound, Recovery: ListAll}
	case NotKnown:
		return Decision{Revoke: Unauthorized, Recovery: ListAll, Drop: true}
	case NotAllowed:
		return Decision{Revoke: Forbidden, Recovery: ListAll, Drop: true}
	case NotServed:
		return Decision{Revoke: ResourceGone, Recovery: ListAll, Drop: true}
	case NotWatchable:
		return Decision{Revoke: Unsupported, Recovery: ListAll, Drop: true}
	case NotUsable:
		return Decision{Revoke: BadData, Recovery: ListAll}
	case SetTooLarge:
		// Not dropped: what is held is within the limit. The list says when there is
		// less.
		return Decision{Revoke: TooLarge, Recovery: ListAll}
	case RevokeCalled:
		return Decision{Revoke: Requested, Recovery: ListAll}
	case ContextEnded:
		return Decision{Revoke: Closed}
	default:
		// A sighting this version does not know cannot be vouched for.
		return Decision{Revoke: BadData, Recovery: ListAll}
	}
}

// Decide asks the policy, and returns its decision made at least as strict as
// the guarantees need it:
//
//   - only what leaves the data possibly right ([StreamEnded], [StreamBroken],
//     [VersionExpired]) may keep the token where Default would end it;
//   - recovery is never less than Default's, since less could not bring the
//     store up to date;
//   - what Default drops is dropped: rights that were withdrawn are not served
//     from memory;
//   - what is dropped is not vouched for: the token ends, if no other reason is
//     given because the program has [Requested] it, and the set is listed again.
func (p Policy) Decide(o Observation) Decision {
	least := Default(o)
	if p == nil {
		return least
	}
	d := p(o)
	switch o.Seen {
	case StreamEnded, StreamBroken, VersionExpired:
	default:
		if d.Revoke == "" {
			d.Revoke = least.Revoke
		}
	}
	d.Recovery = max(d.Recovery, least.Recovery)
	d.Drop = d.Drop || least.Drop
	if d.Drop {
		d.Recovery = ListAll
		if d.Revoke == "" {
			d.Revoke = Requested
		}
	}
	return d
}
