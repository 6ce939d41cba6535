package safestore

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// C59: both edges are in the status, with their reasons, of a store as of a group.
func TestC59StatusRemembersTransitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRig(t)
		g := groupOf(t, r)
		said := func(s Status) (lines []string) {
			for _, move := range s.Transitions {
				lines = append(lines, fmt.Sprintf("%v: %d %v %s %v %d", move.At.Sub(began), move.Generation, move.State,
					string(move.Reason), move.Cause, move.Objects))
			}
			return lines
		}
		assert.Empty(t, r.Status().Transitions)
		assert.Equal(t, began, g.Status().Since)

		time.Sleep(time.Minute)
		r.publishSet(t, "1", mapOf("A", "a", "1"))
		time.Sleep(time.Minute)
		assert.Equal(t, time.Minute, r.Status().Since.Sub(began))
		assert.Equal(t, time.Minute, g.Status().Since.Sub(began))
		r.revokeFor(invalidation.StreamStuck, errors.New("silent"))
		time.Sleep(time.Minute)
		r.revokeFor(invalidation.NotAllowed, errors.New("no"))
		assert.Equal(t, 2*time.Minute, r.Status().Since.Sub(began), "through however many generations")
		assert.Equal(t, 2*time.Minute, g.Status().Since.Sub(began))
		r.publishSet(t, "2")
		assert.Equal(t, []string{
			"1m0s: 1 Ready  <nil> 1",
			"2m0s: 1 Revoked Stuck silent 0",
			"3m0s: 2 Revoked Forbidden no 0",
			"3m0s: 3 Ready  <nil> 0",
		}, said(r.Status()))
		assert.Equal(t, "3m0s: 2 Ready  <nil> 0", said(g.Status())[2])
		assert.True(t, r.Status().Transitions[1].WasReady)
		assert.False(t, r.Status().Transitions[2].WasReady)

		before := r.Status()
		for range 40 {
			r.publishSet(t, "3")
			r.revokeFor(invalidation.StreamStuck, nil)
		}
		assert.Len(t, r.Status().Transitions, keptTransitions)
		assert.Equal(t, token.Revoked, r.Status().Transitions[keptTransitions-1].State, "the newest one is the last")
		assert.Len(t, said(before), 4, "a status does not change")
	})
}
