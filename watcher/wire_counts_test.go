package watcher_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/watcher"
)

var errTrouble = errors.New("the server is in trouble")

// counts are what has been counted when everything is quiet, without how long
// things took.
func (r *rig) counts() watcher.Counts {
	synctest.Wait()
	c := r.watch.Status().Counts
	c.Applied = watcher.Durations{}
	return c
}

func (r *rig) applied() uint64 {
	synctest.Wait()
	return r.watch.Status().Counts.Applied.Count()
}

func TestCounts(t *testing.T) {
	opts := watcher.Options{MinBackoff: time.Second, MaxBackoff: time.Second, AuditInterval: time.Hour}
	onWire(t, opts, func(t *testing.T, r *rig) {
		r.fill(3)
		heal := r.Break(wiretest.First(1, wiretest.Initial), wiretest.Answer(apierrors.NewInternalError(errTrouble)))
		r.start()
		want := watcher.Counts{Lists: 1, Failures: 1}
		assert.Equal(t, want, r.counts(), "a first list that fails")
		after(3 * time.Second)
		heal()
		want.Lists, want.Syncs, want.Watches = 2, 1, 1
		assert.Equal(t, want, r.counts(), "one that does not")
		assert.Zero(t, r.applied(), "the initial set is no events")

		r.put("map-000", "new")
		r.maps.Delete("default", "new")
		assert.EqualValues(t, 3, r.applied())
		assert.Equal(t, want, r.counts(), "events")

		r.watch.Prove()
		want.ProofsAsked, want.Proofs = 1, 1
		assert.Equal(t, want, r.counts(), "a proof")
		heal = r.Break(wiretest.Lists, wiretest.Answer(apierrors.NewInternalError(errTrouble)))
		r.watch.Prove()
		want.ProofsAsked, want.ProofsFailed, want.Failures = 2, 1, 2
		assert.Equal(t, want, r.counts(), "a proof that fails")
		heal()
		after(8 * time.Second)
		want.ProofsAsked, want.Proofs = 3, 2
		assert.Equal(t, want, r.counts(), "and is tried again")

		r.End()
		after(3 * time.Second)
		want.Watches++
		got := r.counts()
		assert.Equal(t, want.Watches, got.Watches, "a watch that ended is resumed")
		assert.Equal(t, want.Lists, got.Lists)
		want = got

		r.watch.Relist()
		want.Lists, want.Syncs, want.Relists, want.Watches = want.Lists+1, want.Syncs+1, 1, want.Watches+1
		assert.Equal(t, want, r.counts(), "a relist")

		heal = r.Break(wiretest.All, wiretest.Answer(apierrors.NewInternalError(errTrouble)))
		r.watch.Relist()
		after(10 * time.Second)
		heal()
		after(5 * time.Second)
		got = r.counts()
		assert.Greater(t, got.Lists, want.Lists+3)
		assert.EqualValues(t, 2, got.Relists, "however often it fails, one relist")
		assert.Equal(t, want.Syncs+1, got.Syncs)

		before := got
		after(time.Hour)
		got = r.counts()
		assert.EqualValues(t, 1, got.Audits)
		assert.Equal(t, got.ProofsAsked-before.ProofsAsked, got.Proofs-before.Proofs, "all went well for an hour")
		assert.Equal(t, before.ProofsFailed, got.ProofsFailed)
	})
}

// A proof that finds the watch stuck has failed. One whose connection was cut is asked for
// again, for who waited, and for the doubt.
func TestCountsOfProofsThatEndOtherwise(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.put("a")
		r.start()
		r.Stall()
		r.put("b")
		r.watch.Prove()
		after(2 * time.Second)
		assert.EqualValues(t, 1, r.counts().ProofsFailed, "stuck")
	})
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.put("a")
		r.start()
		r.Break(wiretest.First(1, wiretest.Lists), wiretest.Hang)
		r.watch.Prove()
		synctest.Wait()
		r.Cut()
		after(10 * time.Second)
		c := r.counts()
		assert.EqualValues(t, 2, c.ProofsAsked)
		assert.EqualValues(t, 2, c.Proofs)
	})
}

// An event may be what a proof waits for: then it is over for the status as well.
func TestProofByAnEventIsOver(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.put("a")
		r.start()
		r.Stall()
		r.put("b")
		r.watch.Prove()
		synctest.Wait()
		assert.Equal(t, "waiting for the watch to reach it", r.watch.Status().Proof)
		r.Resume()
		assert.Equal(t, []string{"a", "b"}, r.names())
		assert.EqualValues(t, 1, r.counts().Proofs)
		assert.Empty(t, r.watch.Status().Proof)
	})
}

// What a slow sink takes is in the time of an event.
func TestAppliedIsUntilPublished(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.start()
		r.slow = 5 * time.Millisecond
		for i := range 4 {
			r.put(fmt.Sprint("map-", i))
		}
		after(time.Second)
		applied := r.watch.Status().Counts.Applied
		assert.EqualValues(t, 4, applied.Count())
		assert.Equal(t, 20*time.Millisecond, applied.Sum)
		for bound, n := range applied.Buckets() {
			assert.Equal(t, bound >= 10*time.Millisecond, n == 4, "%d within %v", n, bound)
		}
	})
}
