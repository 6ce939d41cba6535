package safestore

import (
	"fmt"
	"strings"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// GroupError says which members of a group are not ready, and why. errors.Is and
// errors.As find [ErrNotReady], always, and what the members' errors hold; the
// first [*NotReadyError] if several are of that type. They find the group's own
// revocation if it is closed or held back by a blocking hook. Of the context of the
// reader it says what a NotReadyError does.
type GroupError struct {
	// Group is the group's name, and Generation the token that is waited for.
	Group      string
	Generation uint64
	// Members are the errors of the members that are not ready, in the order of
	// the members: *NotReadyError, or *GroupError for groups. Empty if all have
	// become ready by now, while the group is held back by a blocking hook, and for a
	// group without members or that is closed.
	Members []error
	// Size is how many members there are.
	Size int
	// Revocation is what ended the generation before, or the last one if the group is
	// closed; nil if there was none.
	Revocation *invalidation.Revocation
	// Waited is how the reader's context ended, with its cause; nil if the reader
	// did not wait.
	Waited error

	closed bool // the group is
	held   bool // the members are ready, and a blocking hook is not done
}

// explain says why the group is not ready. waited is why the reader no longer
// waits, nil if it did not.
func (g *Group) explain(waited error) *GroupError {
	members, t := g.current(), g.tokens.Current()
	e := &GroupError{
		Group: g.name, Generation: t.Generation(), Size: len(members), Waited: waited,
		Revocation: g.last.Load(), closed: t.State() == token.Revoked, // none follows it
	}
	for _, m := range members {
		if err := m.NotReady(); err != nil {
			e.Members = append(e.Members, err)
		}
	}
	e.held = len(e.Members) == 0 && t.State() == token.Pending && g.barrier.Remaining() > 0
	return e
}

// Error tells all of it in one line.
func (e *GroupError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: group %s, generation %d: ", ErrNotReady, e.Group, e.Generation)
	switch {
	case e.closed:
		fmt.Fprint(&b, e.Revocation)
	case e.Size == 0:
		fmt.Fprint(&b, errNoMembers)
	case e.held:
		fmt.Fprintf(&b, "all members are ready; a blocking hook has not done with: %v", e.Revocation)
	case len(e.Members) == 0:
		fmt.Fprint(&b, "all members have become ready by now")
	default:
		fmt.Fprintf(&b, "%d of its %d members not ready", len(e.Members), e.Size)
		for _, err := range e.Members {
			fmt.Fprintf(&b, "; %v", err)
		}
	}
	if e.Waited != nil {
		fmt.Fprintf(&b, "; gave up waiting: %v", e.Waited)
	}
	return b.String()
}

// Unwrap gives errors.Is and errors.As what is listed at [GroupError].
func (e *GroupError) Unwrap() []error {
	all := append([]error{ErrNotReady}, e.Members...)
	if e.closed || e.held {
		all = append(all, e.Revocation)
	}
	if e.Waited != nil {
		all = append(all, quoted{e.Waited, true})
	}
	return all
}
