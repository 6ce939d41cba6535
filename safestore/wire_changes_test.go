package safestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// follower has what it was told of a store, and the changes in words.
type follower struct {
	heard []string
	has   map[types.NamespacedName]*corev1.ConfigMap
}

// follow subscribes to a store for the rest of the test. The subscriber takes its
// time with each change. What it has may be looked at when all is quiet.
func (w *wire) follow(pause func() time.Duration) *follower {
	f := &follower{has: map[types.NamespacedName]*corev1.ConfigMap{}}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error)
	go func() {
		done <- w.store.Subscribe("follower").Handle(ctx, func(c safestore.Change[*corev1.ConfigMap]) error {
			time.Sleep(pause())
			f.hear(w.t, c)
			return nil
		})
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			assert.ErrorIs(w.t, err, invalidation.Closed, "the test's context ends both, in any order")
		}
	})
	return f
}

func (f *follower) hear(t *testing.T, c safestore.Change[*corev1.ConfigMap]) {
	said := c.String()
	switch c.Type {
	case safestore.Init, safestore.InitDone:
		said += fmt.Sprint(" ", c.Token.Generation())
	case safestore.Revoked:
		said += fmt.Sprintf(" %d %s", c.Token.Generation(), string(c.Revocation.Reason))
	case safestore.Deleted:
		said += fmt.Sprintf(" %s, unknown: %t", c.Old.Data["key"], c.FinalStateUnknown)
		assert.Equal(t, f.has[c.Key], c.Old, "what it got last, at %s", said)
		delete(f.has, c.Key)
	case safestore.Added:
		assert.Nil(t, f.has[c.Key], "at %s", said)
		f.has[c.Key] = c.New
	case safestore.Updated:
		assert.Equal(t, f.has[c.Key], c.Old, "what it got last, at %s", said)
		f.has[c.Key] = c.New
	}
	f.heard = append(f.heard, said)
}

// said returns what was heard since it was last asked.
func (f *follower) said() []string {
	synctest.Wait()
	heard := f.heard
	f.heard = nil
	return heard
}

// shown is what the follower has, one line for each object.
func (f *follower) shown() []string {
	synctest.Wait()
	var lines []string
	for _, m := range f.has {
		lines = append(lines, line(m))
	}
	slices.Sort(lines)
	return lines
}

func atOnce() time.Duration { return 0 }

// C39, C40: what happened while the store was cut off is told once it is ready
// again, each delete once and with the last known object.
func TestC39DeletedWhileCutOff(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.maps.Set(configMap("x", "1"))
		w.ready()
		f := w.follow(atOnce)
		assert.Equal(t, []string{"Init 1", "Added default/x", "InitDone 1"}, f.said())
		w.maps.Set(configMap("y", "1"))
		assert.Equal(t, []string{"Added default/y"}, f.said())
		w.maps.Delete("default", "y")
		assert.Equal(t, []string{"Deleted default/y 1, unknown: false"}, f.said())

		w.Down()
		w.maps.Set(configMap("x", "2"))
		w.maps.Delete("default", "x")
		w.maps.Set(configMap("z", "1"))
		w.Compact()
		w.Up()
		after(time.Minute)
		w.same()
		heard := f.said()
		require.Len(t, heard, 5)
		assert.Equal(t, []string{"Revoked 1 Relist", "Init 2"}, heard[:2])
		assert.ElementsMatch(t, []string{"Deleted default/x 1, unknown: true", "Added default/z"}, heard[2:4])
		assert.Equal(t, "InitDone 2", heard[4])
		_, err := w.store.Get(t.Context(), named("x"))
		assert.True(t, apierrors.IsNotFound(err))

		w.Down()
		w.maps.Delete("default", "z")
		w.maps.Set(configMap("z", "another"))
		w.Compact()
		w.Up()
		after(time.Minute)
		assert.Equal(t, []string{"Revoked 2 Relist", "Init 3", "Deleted default/z 1, unknown: true", "Added default/z", "InitDone 3"}, f.said())
	})
}

// After any sequence of faults, subscribers have exactly what the server has, and
// on the way each change fits what they were told before.
//
// Replay one run with: go test ./safestore -run TestChangesAnyFaults -seed=N
func TestChangesAnyFaultsThenHealthy(t *testing.T) {
	for _, seed := range seedsFor(60) {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { changesAnyFaults(t, seed) }) {
			return
		}
	}
}

func changesAnyFaults(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	opts := watchOptions(watcher.Options{PageSize: 1 + rnd.Int64N(4)})
	opts.GaplessRelist = rnd.IntN(2) == 0
	if rnd.IntN(2) == 0 {
		opts.MaxStaleness = 10*time.Second + time.Duration(rnd.Int64N(int64(time.Minute)))
	}
	onWire(t, opts, func(t *testing.T, w *wire) {
		change := func() {
			name := fmt.Sprint(rnd.IntN(8))
			if _, exists := w.maps.Objects()[named(name)]; exists && rnd.IntN(3) == 0 {
				w.maps.Delete("default", name)
			} else {
				w.maps.Set(configMap(name, fmt.Sprint(rnd.Int())))
			}
		}
		w.run()
		slow := rand.New(rand.NewPCG(seed, 1))
		followers := []*follower{
			w.follow(atOnce),
			w.follow(func() time.Duration { return time.Duration(slow.Int64N(int64(10 * time.Second))) }),
		}
		for range 1 + rnd.IntN(8) {
			if rnd.IntN(3) > 0 {
				which, _ := pick(rnd, requests)
				fault, _ := pick(rnd, faults(w, rnd))
				heal := w.Break(which, fault)
				time.AfterFunc(time.Duration(rnd.Int64N(int64(time.Minute))), heal)
			}
			if rnd.IntN(2) == 0 {
				act, _ := pick(rnd, outages)
				act(w)
			}
			for range rnd.IntN(4) {
				change()
			}
			after(time.Duration(rnd.Int64N(int64(2 * time.Minute))))
		}
		w.Heal()
		change()
		after(healing + 20*time.Minute) // the slow one has its own pace
		require.Equal(t, token.Ready, w.store.Token().State())
		for i, f := range followers {
			assert.Equal(t, w.truth(), f.shown(), "follower %d", i)
		}
	})
}
