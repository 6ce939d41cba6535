package safestore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// listener is a subscriber that writes down what it is told, and checks on the way
// what every subscriber may rely on: the grammar of phases, and that each change
// fits what it was told before.
type listener struct {
	t      testing.TB
	sub    *Subscription[*Map]
	cancel context.CancelFunc
	done   chan error

	// before is called with each change before it counts as dealt with; nil for
	// nothing.
	before func(Change[*Map])

	mu         sync.Mutex
	heard      []string
	has        map[types.NamespacedName]*Map
	generation uint64 // zero between Revoked and Init
	last       uint64 // newest generation it was told of
	complete   bool
	wrong      string
}

// listen subscribes until the end of the test, or until cancel is called.
func listen(t testing.TB, s Collection[*Map], before func(Change[*Map]), opts ...ListOption) *listener {
	l := &listener{t: t, sub: s.Subscribe("listener", opts...), before: before, done: make(chan error, 1)}
	l.has = map[types.NamespacedName]*Map{}
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(t.Context())
	go func() { l.done <- l.sub.Handle(ctx, l.hear) }()
	t.Cleanup(l.stop)
	return l
}

// stop ends the subscription, and the test if it was told anything wrong.
func (l *listener) stop() {
	l.cancel()
	err := <-l.done
	l.done <- err
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrong != "" {
		l.t.Errorf("%s, after %v", l.wrong, l.heard)
	}
}

func (l *listener) hear(c Change[*Map]) error {
	if l.before != nil {
		l.before(c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, inWords(c))
	if wrong := l.check(c); wrong != "" && l.wrong == "" {
		l.wrong = fmt.Sprintf("%s at %s", wrong, inWords(c))
	}
	return nil
}

// check reports what is wrong with a change.
func (l *listener) check(c Change[*Map]) string {
	switch {
	case c.Token == nil:
		return "no token"
	case c.Type == Init:
		if l.generation != 0 || c.Token.Generation() <= l.last {
			return "out of order"
		}
		l.generation, l.last, l.complete = c.Token.Generation(), c.Token.Generation(), false
		return ""
	case c.Token.Generation() != l.generation:
		return "of another generation"
	}
	had := l.has[c.Key]
	if (c.Old == nil) != (had == nil) || had != nil && !alike(c.Old, had) {
		return "not what it got last"
	}
	switch c.Type {
	case Added, Updated:
		switch {
		case c.New == nil || Key(c.New) != c.Key:
			return "not the object of that key"
		case (had == nil) != (c.Type == Added):
			return "not a change of that type"
		case had != nil && had.UID != c.New.UID:
			return "an update from one object to another"
		case had != nil && had.ResourceVersion == c.New.ResourceVersion:
			return "nothing has changed"
		}
		l.has[c.Key] = c.New
	case Deleted:
		if had == nil || c.New != nil {
			return "a wrong delete"
		}
		delete(l.has, c.Key)
	case InitDone:
		if l.complete {
			return "told twice"
		}
		l.complete = true
	case Revoked:
		if c.Revocation == nil || c.Revocation.Generation != l.generation {
			return "the wrong revocation"
		}
		l.generation = 0
	default:
		return "unknown type"
	}
	return ""
}

// inWords is a change in one line.
func inWords(c Change[*Map]) string {
	switch c.Type {
	case Init, InitDone:
		return fmt.Sprintf("%v %d", c.Type, c.Token.Generation())
	case Revoked:
		return fmt.Sprintf("%v %d %s", c.Type, c.Token.Generation(), string(c.Revocation.Reason))
	case Updated:
		return fmt.Sprintf("%v %s %s to %s", c.Type, c.Key.Name, c.Old.ResourceVersion, c.New.ResourceVersion)
	case Added:
		return fmt.Sprintf("%v %s %s", c.Type, c.Key.Name, c.New.ResourceVersion)
	case Deleted:
		unknown := ""
		if c.FinalStateUnknown {
			unknown = ", final state unknown"
		}
		return fmt.Sprintf("%v %s %s%s", c.Type, c.Key.Name, c.Old.ResourceVersion, unknown)
	default:
		return c.Type.String()
	}
}

// said waits until all is quiet, and compares what the listener was told since it
// was last asked. Within a set, changes are in no particular order.
func (l *listener) said(want ...string) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := slices.Clone(l.heard)
	l.heard = nil
	require.Empty(l.t, l.wrong)
	require.Equal(l.t, want, got)
}

// same waits until all is quiet, and says that the listener has what the snapshot
// shows of it.
func (l *listener) same(snapshot *Snapshot[*Map], opts ...ListOption) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(l.t, l.wrong)
	list, err := snapshot.List(opts...)
	require.NoError(l.t, err)
	want := map[types.NamespacedName]*Map{}
	for _, obj := range list {
		want[Key(obj)] = obj
	}
	require.Equal(l.t, want, l.has)
}
