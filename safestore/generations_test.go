package safestore

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// ends are all the ways in which a token of a store ends.
var ends = map[string]func(r *rig){
	"keeping the data":  func(r *rig) { r.revokeFor(invalidation.StreamStuck, errors.New("silent")) },
	"dropping the data": func(r *rig) { r.revokeFor(invalidation.NotAllowed, errors.New("forbidden")) },
	"by the program":    func(r *rig) { r.store.Revoke(r.Token(), nil) },
	"without a gap": func(r *rig) {
		r.Begin()
		r.Publish("2", watcher.Proof{AsOf: time.Now()})
	},
	"for good": func(r *rig) { r.close(context.Canceled) },
}

// hooked is a context that tells when work derived from it ends, in the goroutine
// that ends it and at that very moment: by then the work looks into its parent.
type hooked struct {
	context.Context
	looked func()
}

func (h *hooked) Done() <-chan struct{} {
	if h.looked != nil {
		h.looked()
	}
	return h.Context.Done()
}

// Work under a member's token is the first that ends with it. Its group is over by
// then, and so is the group of that group.
func TestGroupIsOverBeforeAnythingOfItsMember(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			a, b := namedRig(t, "a"), namedRig(t, "b")
			inner := groupOf(t, a, b)
			outer, err := NewGroup("outer", inner)
			require.NoError(t, err)
			defer outer.Close()
			a.publishSet(t, "1")
			b.publishSet(t, "1")
			ofInner, ofOuter := inner.Token(), outer.Token()
			require.Equal(t, token.Ready, ofOuter.State())

			parent := &hooked{Context: context.Background()}
			work, cancel := a.Token().Tie(parent)
			defer cancel()
			looked := false
			parent.looked = func() {
				if work.Err() == nil || looked {
					return
				}
				looked = true
				assert.Equal(t, token.Revoked, ofInner.State(), "of the group")
				assert.Equal(t, token.Revoked, ofOuter.State(), "of the group's group")
				if name == "without a gap" {
					assert.Equal(t, token.Ready, inner.Token().State(), "the next one")
					assert.Equal(t, token.Ready, outer.Token().State(), "the next one")
				}
			}
			end(a)
			assert.True(t, looked)
			parent.looked = nil
		})
	}
}

// Whoever finds a member over, or unreadable, finds its group over.
func TestNobodyFindsAMemberOverAndItsGroupReady(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			for range 300 {
				a := namedRig(t, "a")
				g := groupOf(t, a)
				a.publishSet(t, "1")
				ofGroup, ofMember := g.Token(), a.Token()
				require.Equal(t, token.Ready, ofGroup.State())
				var watching sync.WaitGroup
				for over, look := range map[string]func() bool{
					"its token":            func() bool { return ofMember.State() == token.Revoked },
					"its token's replaced": func() bool { return a.Token() != ofMember },
					"reads":                func() bool { return a.NotReady() != nil },
				} {
					if over == "reads" && name == "without a gap" || over == "its token's replaced" && name == "for good" {
						continue
					}
					watching.Go(func() {
						for !look() {
						}
						if over == "its token's replaced" && name == "without a gap" {
							return // the group goes on to the next one after it
						}
						assert.Equal(t, token.Revoked, ofGroup.State(), "%s", over)
					})
				}
				end(a)
				watching.Wait()
				g.Close()
			}
		})
	}
}

// A group that was told that a member ends counts it out, though its token is still
// ready, and whatever its other members do meanwhile.
func TestGroupCountsOutAMemberThatEnds(t *testing.T) {
	a, b, c := namedRig(t, "a"), namedRig(t, "b"), namedRig(t, "c")
	g := groupOf(t, a, b)
	for _, r := range []*rig{a, b, c} {
		r.publishSet(t, "1")
	}
	leave := a.follow(follower{
		move: func(to move) {
			if to.ended == nil {
				return
			}
			assert.Equal(t, token.Ready, a.Token().State(), "it is about to end")
			assert.NoError(t, a.NotReady(), "and its data is there")
			b.revokeFor(invalidation.StreamStuck, nil)
			b.publishSet(t, "2")
			assert.NoError(t, b.NotReady())
		},
		settled: func() {},
	})
	defer leave()
	a.revokeFor(invalidation.NotAllowed, errors.New("forbidden"))
	assert.Equal(t, token.Pending, g.Token().State())
	a.publishSet(t, "2")
	assert.Equal(t, token.Ready, g.Token().State())
}

// The log says who moved the token: the writing side, the end of Run or, for a
// revocation by the program, the program.
func TestLogNamesWhoMovedTheToken(t *testing.T) {
	var out bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	r := newRig(t)
	r.log.Store(&logger)
	for _, step := range []struct {
		move func()
		want string
	}{
		{func() { r.publishSet(t, "1") }, "writer.go:"},
		{func() { r.revokeFor(invalidation.StreamStuck, nil) }, "writer.go:"},
		{func() { r.undamp(); r.Prove(watcher.Proof{AsOf: time.Now()}) }, "writer.go:"},
		{func() { r.store.Revoke(r.Token(), nil) }, "generations_test.go:"},
	} {
		out.Reset()
		step.move()
		assert.Contains(t, out.String(), step.want)
		assert.NotContains(t, out.String(), "publish.go")
	}
}
