package health

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// explanation is why one store is not ready.
type explanation struct {
	store string
	whole bool // it is a group, for which no member is to blame
	err   error
}

// explanations takes apart what a store or a group says about itself.
func explanations(err error) []explanation {
	var group *safestore.GroupError
	var store *safestore.NotReadyError
	switch {
	case errors.As(err, &group) && group == err:
		if len(group.Members) == 0 { // it has none, is closed, or a blocking hook holds it back
			return []explanation{{group.Group, true, err}}
		}
		var all []explanation
		for _, member := range group.Members {
			all = append(all, explanations(member)...)
		}
		return all
	case errors.As(err, &store):
		return []explanation{{store.Store, false, err}}
	}
	return nil
}

// failure is a store that makes a check fail.
type failure struct {
	explanation
	status  safestore.Status
	now     time.Time
	reasons bool // may be told
}

// Error says which store, since when and why, in one word or in full.
func (f *failure) Error() string {
	if f.reasons {
		return f.detail()
	}
	text := f.store + " is not ready"
	if !f.status.Since.IsZero() {
		text += fmt.Sprintf(" for %v", watcher.Age(f.status.Since, f.now).Round(time.Second))
	}
	return text + ": " + f.word()
}

// Unwrap gives errors.Is and errors.As the store's own error.
func (f *failure) Unwrap() error { return f.err }

// detail is all that is known, in one line.
func (f *failure) detail() string { return strings.Join(strings.Fields(f.err.Error()), " ") }

// word is the reason.
func (f *failure) word() string {
	var r *invalidation.Revocation
	switch {
	case errors.As(f.err, &r):
		return cmp.Or(string(r.Reason), "unknown")
	case errors.Is(f.err, safestore.ErrNotStarted):
		return safestore.ErrNotStarted.Error()
	case f.whole:
		return "there are no members"
	}
	return "never ready since its start"
}
