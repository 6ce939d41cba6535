package safestore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// TestChangesModel runs random writes, lists, refusals and proofs, with
// subscribers that are quick and slow, of all and of a part, and that come and go.
// The listener checks the grammar, and that each change fits what it was told
// before: so what it has follows from the changes alone. Beyond that
//
//   - what it has is exactly what the store shows, whenever all is quiet;
//   - nothing is deleted that was not gone from a ready store (guarantee 7);
//   - an object is only said to be in its final state if it is (C39).
//
// Replay one run with: go test ./safestore -run TestChangesModel -seed=N
func TestChangesModel(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	seeds(t, n, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{rig: newRig(t), t: t, rnd: rand.New(rand.NewPCG(seed, 0)), version: 100}
			w.truth, w.final = map[string]*Map{}, map[types.UID]string{}
			w.shown, w.gone = map[types.UID]bool{}, map[types.UID]bool{}
			for range 100 {
				w.step()
				if w.rnd.IntN(3) == 0 {
					time.Sleep(time.Duration(w.rnd.IntN(100)) * time.Millisecond)
				}
			}
			w.quiet()
			for _, l := range w.listeners {
				l.stop()
			}
		})
	})
}

// world is a server, a store and its subscribers.
type world struct {
	*rig
	t   *testing.T
	rnd *rand.Rand

	version   int
	uids      int
	truth     map[string]*Map      // what the server has
	final     map[types.UID]string // the version in which each object was deleted
	healing   bool                 // the next list is a good one
	follows   bool                 // the store has a set, and hears of events
	listeners []*listener
	parts     [][]ListOption // of each listener

	shown, gone map[types.UID]bool // by a store that was ready, and no longer

	mu sync.Mutex // for what the listeners look at: final and gone
}

func (w *world) step() {
	switch n := w.rnd.IntN(100); {
	case n < 50:
		w.act(w.write)
	case n < 62:
		w.act(w.list)
	case n < 70:
		w.act(w.trouble)
	case n < 76:
		w.act(w.prove)
	case n < 80:
		if w.follows {
			w.Advance(strconv.Itoa(w.version))
		}
	case n < 90 && len(w.listeners) < 6:
		w.subscribe()
	case n < 93 && len(w.listeners) > 0:
		i := w.rnd.IntN(len(w.listeners))
		w.listeners[i].stop()
		w.listeners[i] = w.listeners[len(w.listeners)-1]
		w.parts[i] = w.parts[len(w.parts)-1]
		w.listeners, w.parts = w.listeners[:len(w.listeners)-1], w.parts[:len(w.parts)-1]
	default:
		w.quiet()
	}
}

// act does something to the store, and takes note of what it shows then, before a
// listener can go by it.
func (w *world) act(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
	w.look()
}

func (w *world) prove() {
	w.undamp()
	if w.follows {
		w.Prove(watcher.Proof{AsOf: time.Now()})
	}
}

// write changes the server, and the store if it follows.
func (w *world) write() {
	w.version++
	name := fmt.Sprint(w.rnd.IntN(8))
	old := w.truth[name]
	if old != nil && w.rnd.IntN(3) == 0 {
		delete(w.truth, name)
		w.final[old.UID] = old.ResourceVersion
		deleted := old.DeepCopy()
		deleted.ResourceVersion = strconv.Itoa(w.version)
		if w.follows {
			w.apply(watch.Deleted, deleted)
		}
		return
	}
	m := mapOf("ns"+name[:1], name, strconv.Itoa(w.version))
	m.Labels = map[string]string{"half": fmt.Sprint(w.rnd.IntN(2))}
	if old == nil || w.rnd.IntN(5) == 0 {
		w.uids++
		m.UID = types.UID(fmt.Sprint("uid ", w.uids))
		if old != nil { // the delete is missed
			w.final[old.UID] = "unknown"
		}
	} else {
		m.UID = old.UID
	}
	w.truth[name] = m
	if w.follows {
		w.apply(watch.Modified, m)
	}
}

func (w *world) apply(event watch.EventType, m *Map) {
	if err := w.Apply(event, m.DeepCopy()); err != nil {
		w.t.Error(err)
	}
}

// list publishes what the server has. A token that is ready may be kept meanwhile,
// and one that is pending be revoked meanwhile.
func (w *world) list() {
	if _, ready := w.ready(); ready && w.rnd.IntN(2) == 0 {
		w.revokeFor(invalidation.VersionExpired, nil)
	}
	w.Begin()
	for _, m := range w.truth {
		if err := w.Build(watch.Added, m.DeepCopy()); err != nil {
			w.t.Error(err)
		}
	}
	if w.rnd.IntN(5) == 0 && !w.healing {
		w.store.Revoke(w.Token(), nil)
	}
	w.put(w.t, strconv.Itoa(w.version))
	w.follows = true
}

// trouble ends the token, with and without the need of a list.
func (w *world) trouble() {
	switch w.rnd.IntN(4) {
	case 0:
		w.revokeFor(invalidation.NotAllowed, nil)
		w.follows = false
	case 1:
		w.revokeFor(invalidation.VersionExpired, nil)
		w.follows = false
	case 2:
		w.store.Revoke(w.Token(), nil)
	default:
		w.revokeFor(invalidation.StreamStuck, nil)
	}
}

// look takes note of what a ready store shows.
func (w *world) look() {
	snapshot, ok := w.ready()
	if !ok {
		return
	}
	now := map[types.UID]bool{}
	for _, m := range snapshot.All() {
		now[m.UID] = true
		w.shown[m.UID] = true
	}
	for uid := range w.shown {
		if !now[uid] {
			w.gone[uid] = true
		}
	}
}

func (w *world) subscribe() {
	var opts []ListOption
	switch w.rnd.IntN(4) {
	case 0:
		opts = append(opts, MatchingLabels(map[string]string{"half": "1"}))
	case 1:
		opts = append(opts, InNamespace("ns1"))
	}
	pause, seed := w.rnd.IntN(60), w.rnd.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	l := listen(w.t, w.store, func(c Change[*Map]) {
		if pause > 10 {
			time.Sleep(time.Duration(rnd.IntN(pause)) * time.Millisecond)
		}
		if c.Type != Deleted || len(opts) > 0 {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.gone[c.Old.UID] {
			w.t.Errorf("a false delete: %s", inWords(c))
		}
		if final := w.final[c.Old.UID]; !c.FinalStateUnknown && final != c.Old.ResourceVersion {
			w.t.Errorf("the final state was %s: %s", final, inWords(c))
		}
	}, opts...)
	w.listeners, w.parts = append(w.listeners, l), append(w.parts, opts)
}

// quiet makes the store ready, waits until all have been told everything, and
// compares.
func (w *world) quiet() {
	w.healing = true
	if _, ok := w.ready(); !ok {
		w.act(w.list)
	}
	w.healing = false
	time.Sleep(time.Minute)
	for i, l := range w.listeners {
		l.same(w.current.Load(), w.parts[i]...)
		if l.sub.CaughtUp() != w.Token() {
			w.t.Errorf("not caught up: %+v", l.sub.Status())
		}
	}
}
