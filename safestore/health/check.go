package health

import (
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// Check is the health of some stores. It is an [http.Handler], whose answers are
// those of kube-apiserver's /readyz and /livez. Make one with [Ready] or [Live].
type Check struct {
	// Reasons lets the pages tell all that is known about a failure, with the API
	// server's texts, instead of "reason withheld". Set it before the Check is used,
	// and only where those who can read them may: see the package comment.
	Reasons bool

	name    string // of the endpoint
	members []safestore.Readiness
	// tolerates reports whether a store that is not ready does not make the check
	// fail. group is the status of the member that it belongs to: its own, if it is
	// a member itself.
	tolerates func(store, group safestore.Status, now time.Time) bool
}

// newCheck panics for what only a mistake in the program can be.
func newCheck(name string, members []safestore.Readiness) *Check {
	if len(members) == 0 {
		panic("health: no stores")
	}
	names := map[string]bool{}
	for _, m := range members {
		if v := reflect.ValueOf(m); m == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			panic("health: a store is nil")
		}
		if names[m.Name()] {
			panic("health: two stores or groups are called " + m.Name() +
				": give one a name of its own, by Options.Name or NewGroup")
		}
		names[m.Name()] = true
	}
	return &Check{name: name, members: members}
}

// Check returns nil if the check passes, else what is wrong with which stores. It
// does not wait, and does not use the request, which may be nil. It has the shape of
// controller-runtime's healthz.Checker, and of the functions that kube-apiserver's
// healthz.NamedCheck takes.
//
// errors.Is and errors.As find what the stores' errors hold ([safestore.ErrNotReady]
// and an [invalidation.Reason] among it). The text, which controller-runtime puts on
// a page, says no more than [Check].Reasons allows.
func (c *Check) Check(*http.Request) error {
	var failed []error
	for _, o := range c.outcomes() {
		if o.err != nil {
			failed = append(failed, o.err)
		}
	}
	return errors.Join(failed...)
}

// outcome is what the check says of one store.
type outcome struct {
	store string
	group string   // empty for a store that is a member itself
	err   *failure // nil if the check passes
}

// outcomes asks all stores.
func (c *Check) outcomes() []outcome {
	var all []outcome
	for _, m := range c.members {
		// In this order: NotReady finds out that a bound has passed, and then the
		// status says so.
		unready := explanations(m.NotReady())
		now, group := time.Now(), m.Status()
		stores := m.Stores()
		for _, s := range stores {
			o := outcome{store: s.Name}
			if s.Name != m.Name() {
				o.group = m.Name()
			}
			for _, u := range unready {
				if u.store == s.Name && !c.tolerates(s, group, now) {
					o.err = &failure{u, s, now, c.Reasons}
				}
			}
			all = append(all, o)
		}
		for _, u := range unready {
			var status safestore.Status // none for a group without stores, and so no grace
			if len(stores) > 0 {
				status = group
			}
			if u.whole && !c.tolerates(status, status, now) {
				all = append(all, outcome{u.store, m.Name(), &failure{u, status, now, c.Reasons}})
			}
		}
	}
	return all
}
