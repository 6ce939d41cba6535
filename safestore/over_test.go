package safestore

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// Work that was cut with its generation gets nothing of the next one, though that is
// ready, and is told why it was cut. Nor does any other reader whose context is over.
func TestReadsUnderWorkThatIsOverFail(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", mapOf("A", "a", "1"))
	tied, cancel := r.Token().Tie(t.Context())
	defer cancel()
	for name, read := range blockingReads {
		assert.NoError(t, read(r.store, tied), name)
	}
	r.revokeFor(invalidation.VersionExpired, nil)
	r.publishSet(t, "2", mapOf("A", "a", "2"))
	require.NoError(t, r.NotReady())
	for name, read := range blockingReads {
		err := read(r.store, tied)
		assert.ErrorIs(t, err, ErrNotReady, name)
		assert.ErrorIs(t, err, invalidation.Relist, name)
		assert.ErrorIs(t, err, context.Canceled, name)
		assert.ErrorContains(t, err, "v1.ConfigMap is ready, generation 2, and the context of its reader is over", name)
		assert.ErrorIs(t, read(r.store, over()), context.Canceled, name)
		assert.NoError(t, read(r.store, t.Context()), name)
	}
	assert.ErrorIs(t, r.WaitForVersion(tied, "1"), invalidation.Relist)
}

// A loop over generations gets each of them once, and then the end.
func TestWaitNextReturnsEachGenerationOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := namedRig(t, "a")
		g := groupOf(t, a)
		for name, r := range map[string]interface {
			Readiness
			WaitNext(context.Context, *token.Token) (*token.Token, error)
		}{"store": a.store, "group": g} {
			a.publishSet(t, "1")
			ctx, cancel := context.WithCancel(t.Context())
			first, err := r.WaitNext(ctx, nil)
			require.NoError(t, err, name)
			next := make(chan *token.Token)
			failed := make(chan error, 1)
			go func() {
				tok, _ := r.WaitNext(ctx, first)
				next <- tok
				_, err := r.WaitNext(ctx, tok)
				failed <- err
			}()
			synctest.Wait()
			assert.Empty(t, next, "%s: the first one is not over", name)
			a.revokeFor(invalidation.VersionExpired, nil)
			a.publishSet(t, "2")
			assert.Equal(t, first.Generation()+1, (<-next).Generation(), name)
			synctest.Wait()
			assert.Empty(t, failed)
			cancel()
			assert.ErrorIs(t, <-failed, context.Canceled, name)
		}
	})
}

// An object is gone and another one that cannot be kept has its name: a subscriber
// hears of the deletion, also if it gets both events at once.
func TestDeletionIsToldThoughItsSuccessorCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := lenient(t)
		first, second := untyped("A", "x", "1", "good"), untyped("A", "x", "3", int64(1))
		first.SetUID("first")
		second.SetUID("second")
		r.Begin()
		require.NoError(t, r.Build(watch.Added, first))
		r.put(t, "1")
		l := listen(t, r.store, nil)
		l.said("Init 1", "Added x 1", "InitDone 1")
		r.Begin()
		require.NoError(t, r.Build(watch.Added, second))
		r.put(t, "3")
		l.said("Revoked 1 Relist", "Init 2", "Deleted x 1, final state unknown", "InitDone 2")
	})
}

func TestNilArgumentsSayWhatToDo(t *testing.T) {
	_, err := New[*Map](newScripted(), Options{}, nil)
	assert.EqualError(t, err, "safestore: option 1 is nil")
	s := newStore(t, newScripted())
	var none context.Context
	assert.PanicsWithValue(t, "safestore: Run with a nil context: use context.Background()", func() { _ = s.Run(none) })
	assert.PanicsWithValue(t, "safestore: a read with a nil context: use context.Background()", func() { _, _ = s.List(none) })
}
