package watcher

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var searchStates = flag.Int("search.states", 40_000, "how many states the search visits at most")

// found is how a state was reached.
type found struct {
	from int
	by   string
}

// TestSearch visits every state that the machine, a server, a network and a clock can come
// to together, breadth first up to a number of states, and checks in each of them that what
// is proven or ready reflects what it claims (guarantees 2 and 4), that versions of a ready
// set only grow (3), and that what a right was withdrawn from is dropped (11). From every
// tenth one it checks that a healthy server leads to a store that is ready and right.
//
// It runs the real step function. What the world leaves out is said in
// search_world_test.go. A longer search: go test ./watcher -run TestSearch -v
// -search.states=1000000.
func TestSearch(t *testing.T) {
	began := time.Now()
	all := arrows()
	states, how := roots(all)
	seen, depths, healed := map[world]struct{}{}, make([]int, len(states)), 0
	for _, w := range states {
		seen[w] = struct{}{}
	}
	for i := 0; i < len(states) && len(states) < *searchStates; i++ {
		for _, a := range all {
			w := states[i]
			ok, broken := a.do(&w)
			if !ok || w == states[i] {
				continue
			}
			if broken != "" {
				require.Fail(t, broken, "%v", path(how, i, a.name))
			}
			if _, known := seen[w]; known {
				continue
			}
			seen[w] = struct{}{}
			states, how, depths = append(states, w), append(how, found{i, a.name}), append(depths, depths[i]+1)
		}
		if i%10 == 0 {
			healed++
			if steps, ok := heals(states[i], all); !ok {
				require.Fail(t, "a healthy server does not lead to a store that is ready and right",
					"%v\nthen healthy: %v", path(how, i, ""), steps)
			}
		}
	}
	t.Logf("%d states to depth %d in %v; from %d of them the store heals",
		len(states), depths[len(depths)-1], time.Since(began).Round(time.Millisecond), healed)
	assert.Greater(t, len(states), 10_000, "the world is larger than that")
}

// roots are the worlds that the search begins from: the first request of a store, and
// moments in the life of one that is ready, which lie too deep to be come to from there: a
// proof and an audit at each of their stages, with something committed meanwhile.
func roots(all []arrow) (states []world, how []found) {
	add := func(w world, from int, by string) int {
		states, how = append(states, w), append(how, found{from, by})
		return len(states) - 1
	}
	at := add(first(), -1, "the first request")
	ready := states[0]
	steps, _ := heals(ready, all)
	for _, name := range steps {
		ready.follow(name, all)
		at = add(ready, at, name)
	}
	for _, prompts := range [][]string{
		{"somebody waits"}, {"somebody waits", "commit"}, {"an audit is due", "commit"}, {"commit", "silence", "an audit is due"},
	} {
		w, from := ready, at
		for _, name := range prompts {
			w.follow(name, all)
			from = add(w, from, name)
		}
		w.main.open = false // what is committed is not brought, so that the proof goes its way
		steps, _ := heals(w, all)
		w.main.open = true
		for _, name := range steps {
			if w.follow(name, all); w.m.proof.stage == idle && w.m.audit.stage == noAudit {
				break
			}
			from = add(w, from, name)
		}
	}
	return states, how
}

// follow takes the arrow of that name.
func (w *world) follow(name string, all []arrow) {
	for _, a := range all {
		if a.name == name {
			a.do(w)
			return
		}
	}
}

// first is the world after the first request of a store, with one object on the server.
func first() world {
	var w world
	w.server.versions[0] = 2
	w.server.at[0] = collection{{uid: 2, version: 2}}
	m := move{}
	m.build()
	w.m = m.state
	w.carry(m.out)
	return w
}

// heals runs what a healthy server and time bring about, for a number of steps.
func heals(w world, all []arrow) (steps []string, ok bool) {
	const enough = 80
	for range enough {
		if w.ready && w.set == w.server.current() && w.m.proof.owed|w.m.proof.paying == 0 {
			return steps, true
		}
		for _, a := range all {
			before := w
			if can, _ := a.do(&w); a.helps && can && w != before {
				steps = append(steps, a.name)
				break
			}
			w = before
		}
	}
	return steps, false
}

// path is what led to a state, in order.
func path(how []found, i int, last string) (steps []string) {
	for ; i >= 0; i = how[i].from {
		steps = append([]string{how[i].by}, steps...)
	}
	return append(steps, last)
}
