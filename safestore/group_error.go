package safestore

import (
	"fmt"
	"strings"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// GroupError says which members of a group are not ready, and why. errors.Is and
// errors.As find [ErrNotReady], always, and what the members' errors hold; the
// first [*NotReadyError] if several are of that type. Of the context of the reader
// it says what a NotReadyError does.
type GroupError struct {
	// Group is the group's name, and Generation the token that is waited for.
	Group      string
	Generation uint64
	// Members are the errors of the members that are not ready, in the order of
	// the members: *NotReadyError, or *GroupError for groups. Empty if all have
	// become ready by now, and for a group without members or that is closed.
	Members []error
	// Size is how many members there are.
	Size int
	// Waited is how the reader's context ended, with its cause; nil if the reader
	// did not wait.
	Waited error

	closed *invalidation.Revocation // if the group is
}

// explain says why the group is not ready. waited is why the reader no longer
// waits, nil if it did not.
func (g *Group) explain(waited error) *GroupError {
	members, t := g.current(), g.tokens.Current()
	e := &GroupError{Group: g.name, Generation: t.Generation(), Size: len(members), Waited: waited}
	for _, m := range members {
		if err := m.NotReady(); err != nil {
			e.Members = append(e.Members, err)
		}
	}
	if t.State() == token.Revoked { // none follows it
		e.closed = g.last.Load()
	}
	return e
}

// Error tells all of it in one line.
func (e *GroupError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: group %s, generation %d: ", ErrNotReady, e.Group, e.Generation)
	switch {
	case e.closed != nil:
		fmt.Fprint(&b, e.closed)
	case e.Size == 0:
		fmt.Fprint(&b, errNoMembers)
	case len(e.Members) == 0:
		fmt.Fprint(&b, "it was not ready a moment ago")
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
	if e.closed != nil {
		all = append(all, e.closed)
	}
	if e.Waited != nil {
		all = append(all, quoted{e.Waited, true})
	}
	return all
}
