package invalidation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// sightings are all there are: a new one is added here or TestDefault fails.
var sightings = []Sighting{StreamEnded, StreamBroken, StreamStuck, SetDiverged, OutOfTouch, VersionExpired, VersionRewound, NotKnown, NotAllowed, NotServed,
	NotWatchable, NotUsable, SetTooLarge, RevokeCalled, ContextEnded}

func TestDefault(t *testing.T) {
	for seen, want := range map[Sighting]Decision{
		StreamEnded:    {Recovery: Rewatch},
		StreamBroken:   {Recovery: Rewatch},
		StreamStuck:    {Revoke: Stuck, Recovery: Rewatch},
		SetDiverged:    {Revoke: Diverged, Recovery: ListAll},
		OutOfTouch:     {Revoke: Stale},
		VersionExpired: {Revoke: Relist, Recovery: ListAll},
		VersionRewound: {Revoke: Rewound, Recovery: ListAll},
		NotKnown:       {Revoke: Unauthorized, Recovery: ListAll, Drop: true},
		NotAllowed:     {Revoke: Forbidden, Recovery: ListAll, Drop: true},
		NotServed:      {Revoke: ResourceGone, Recovery: ListAll, Drop: true},
		NotWatchable:   {Revoke: Unsupported, Recovery: ListAll, Drop: true},
		NotUsable:      {Revoke: BadData, Recovery: ListAll},
		SetTooLarge:    {Revoke: TooLarge, Recovery: ListAll},
		RevokeCalled:   {Revoke: Requested, Recovery: ListAll},
		ContextEnded:   {Revoke: Closed},
		Sighting(99):   {Revoke: BadData, Recovery: ListAll},
	} {
		assert.Equal(t, want, Default(Observation{Seen: seen}), "sighting %d", seen)
		assert.Equal(t, want, Policy(nil).Decide(Observation{Seen: seen}), "sighting %d, nil policy", seen)
	}
}

// A policy that would keep everything may keep only what can still be right.
func TestDecideKeepsThePromises(t *testing.T) {
	lax := Policy(func(Observation) Decision { return Decision{} })
	mayKeep := map[Sighting]bool{StreamEnded: true, StreamBroken: true, VersionExpired: true}
	for _, seen := range sightings {
		o := Observation{Seen: seen}
		got, least := lax.Decide(o), Default(o)
		assert.Equal(t, mayKeep[seen], got.Revoke == "", "sighting %d", seen)
		if !mayKeep[seen] {
			assert.Equal(t, least.Revoke, got.Revoke)
		}
		assert.Equal(t, least.Recovery, got.Recovery)
		assert.Equal(t, least.Drop, got.Drop)
	}
}

// A policy may be stricter than Default, and use reasons of its own.
func TestDecideTakesAStricterPolicy(t *testing.T) {
	strict := Policy(func(o Observation) Decision {
		return Decision{Revoke: "Nervous", Recovery: ListAll, Drop: true}
	})
	for _, seen := range sightings {
		assert.Equal(t, Decision{Revoke: "Nervous", Recovery: ListAll, Drop: true},
			strict.Decide(Observation{Seen: seen}), "sighting %d", seen)
	}
}
