package invalidation_test

import (
	"fmt"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// A policy of one's own starts from Default and differs where it must. This one
// does not trust the cache once its stream has broken, whatever the data.
func ExamplePolicy() {
	nervous := invalidation.Policy(func(o invalidation.Observation) invalidation.Decision {
		d := invalidation.Default(o)
		if o.Seen == invalidation.StreamBroken {
			d.Revoke, d.Recovery = "Disconnected", invalidation.ListAll
		}
		return d
	})
	fmt.Printf("%q\n", nervous.Decide(invalidation.Observation{Seen: invalidation.StreamBroken}).Revoke)
	fmt.Printf("%q\n", nervous.Decide(invalidation.Observation{Seen: invalidation.StreamEnded}).Revoke)

	// No policy can be laxer than the guarantees allow.
	lax := invalidation.Policy(func(invalidation.Observation) invalidation.Decision { return invalidation.Decision{} })
	d := lax.Decide(invalidation.Observation{Seen: invalidation.NotAllowed})
	fmt.Printf("%q, data dropped: %v\n", d.Revoke, d.Drop)
	// Output:
	// "Disconnected"
	// ""
	// "Forbidden", data dropped: true
}
