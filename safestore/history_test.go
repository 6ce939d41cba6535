package safestore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// TestHistories lets a watcher, readers, revokers and hooks loose on one store,
// from goroutines of their own, and checks what each of them saw against what
// the watcher wrote down:
//
//   - fenced: a read that began after Revoke had returned shows no generation up
//     to the revoked one
//   - complete: what is read at a version is all that there was at that version
//   - monotonic: no reader sees a generation, or without a rewind a version, go
//     back
//   - one list per generation, begun under that generation or replacing the one
//     before it in one step
//   - ordered hooks: ready, revoked, ready, revoked, each generation in turn
func TestHistories(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 5
	}
	seeds(t, n, func(t *testing.T, seed uint64) { newHistory(t, seed).run() })
}

// history is one run.
type history struct {
	*rig
	t    *testing.T
	seed uint64

	fence  atomic.Uint64 // newest generation that is over, since before now
	closed atomic.Bool   // the store is about to be
	states sync.Map      // version (string) → wroteState
	sums   sync.Map      // sum → true
	lists  sync.Map      // generation → number of the list that was read under it

	hooks journal
}

// wroteState is what the watcher wrote down before it wrote to the store.
type wroteState struct {
	sum   uint64
	era   int    // grows with each rewind
	list  int    // number of the list that it comes from
	named uint64 // the generation in which the list began
	kept  bool   // whose token was ready, and kept meanwhile
}

// journal is what hooks have heard.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func newHistory(t *testing.T, seed uint64) *history {
	return &history{rig: newRig(t), t: t, seed: seed}
}

func (h *history) run() {
	var (
		wg    sync.WaitGroup
		turns atomic.Int64 // generations that were ready, as the watcher knows
		busy  atomic.Int64 // hooks of the pair below that are running
	)
	pair := func(what string, generation uint64) {
		if busy.Add(1) != 1 {
			h.t.Errorf("%s %d overlaps another hook", what, generation)
		}
		h.hooks.add("%s %d", what, generation)
		runtime.Gosched()
		busy.Add(-1)
	}
	h.OnReady(func(tok *token.Token) { pair("ready", tok.Generation()) })
	h.OnRevoke(func(r *invalidation.Revocation) {
		if s, err := h.Snapshot(); err == nil && s.Token().Generation() <= r.Generation {
			h.t.Errorf("generation %d is read in its revoke hook", r.Generation)
		}
		pair("revoked", r.Generation)
	})
	h.OnReady(func(*token.Token) { panic("as a hook may") })

	for i := range 3 {
		wg.Go(func() { h.snapshots(h.random(10 + i)) })
	}
	wg.Go(func() { h.stale() })
	for i := range 2 {
		wg.Go(func() { h.blocking(h.random(20 + i)) })
		wg.Go(func() { h.revokes(h.random(30 + i)) })
	}
	wg.Go(func() { h.changeHooks(h.random(40)) })
	wg.Go(func() { h.watch(h.random(50), &turns) })
	wg.Wait()
	require.NoError(h.t, h.store.hooks.Wait(context.Background()))
	h.checkHooks(int(turns.Load()))
}

func (h *history) random(who int) *rand.Rand { return rand.New(rand.NewPCG(h.seed, uint64(who))) }

// watch is the watcher: the only one to write, and the one to close in the end.
func (h *history) watch(rnd *rand.Rand, turns *atomic.Int64) {
	defer func() {
		h.closed.Store(true)
		h.close(errors.New("the end"))
	}()
	const eraSize = 10_000
	w := wroteState{}
	counted := uint64(0)
	set := map[types.NamespacedName]*Map{}
	version := 1_000_000
	write := func() string {
		version++
		at := strconv.Itoa(version)
		w.sum = sumOf(maps.Values(set))
		h.sums.Store(w.sum, true)
		h.states.Store(at, w)
		return at
	}
	object := func() *Map {
		obj := mapOf(string(rune('A'+rnd.IntN(3))), strconv.Itoa(rnd.IntN(10)), strconv.Itoa(version+1))
		set[Key(obj)] = obj
		return obj
	}
	list := func() {
		w.list++
		w.named = h.Token().Generation()
		w.kept = h.Token().State() == token.Ready
		h.Begin()
		for range 1 + rnd.IntN(10) {
			object()
		}
		for _, obj := range set {
			if err := h.Build(watch.Added, obj); err != nil {
				h.t.Errorf("Build: %v", err)
			}
		}
		h.put(h.t, write())
		// Perhaps it is over by now. A token that was kept through the list, and
		// revoked meanwhile, was counted with its own.
		if tok := h.current.Load().token; tok.WasReady() && tok.Generation() > counted {
			counted = tok.Generation()
			turns.Add(1)
		}
	}
	see := func(seen invalidation.Sighting) {
		meant := h.writer.token
		h.revokeFor(seen, errors.New("seen"))
		h.raise(meant)
	}
	for range 400 {
		runtime.Gosched()
		switch n := rnd.IntN(100); {
		case h.Token().State() != token.Ready, n < 2:
			list()
		case n < 4:
			see(invalidation.VersionExpired)
			list()
		case n < 6:
			see(invalidation.NotAllowed)
			set = map[types.NamespacedName]*Map{} // else nobody would miss it
		case n < 8:
			see(invalidation.VersionRewound)
			w.era++
			version = 1_000_000 - w.era*eraSize
			set = map[types.NamespacedName]*Map{}
		case n < 20:
			h.Advance(write())
		case n < 80 || len(set) == 0:
			obj := object()
			h.apply(watch.Modified, obj, write())
		default:
			for k := range set {
				delete(set, k)
				gone := mapOf(k.Namespace, k.Name, strconv.Itoa(version+1))
				h.apply(watch.Deleted, gone, write())
				break
			}
		}
	}
}

func (h *history) apply(event watch.EventType, obj *Map, version string) {
	if obj.ResourceVersion != version {
		h.t.Errorf("test: an object at %s for version %s", obj.ResourceVersion, version)
	}
	if err := h.Apply(event, obj); err != nil {
		h.t.Errorf("%s: %v", event, err)
	}
}

// raise notes that a token is over: from now on its generation is not read.
func (h *history) raise(t *token.Token) {
	if t == nil || t.State() != token.Revoked {
		return
	}
	for {
		now := h.fence.Load()
		if now >= t.Generation() || h.fence.CompareAndSwap(now, t.Generation()) {
			return
		}
	}
}

// reader is what one reader has seen.
type reader struct {
	*history
	generation uint64
	era        int
	version    int
}

func (h *history) snapshots(*rand.Rand) {
	r := &reader{history: h}
	for !h.closed.Load() {
		floor := h.fence.Load()
		s, err := h.Snapshot()
		if err != nil {
			if !errors.Is(err, ErrNotReady) || apierrors.IsNotFound(err) {
				h.t.Errorf("Snapshot: %v", err)
			}
			runtime.Gosched()
			continue
		}
		generation := s.Token().Generation()
		if generation <= floor {
			h.t.Errorf("generation %d is read, %d was over before", generation, floor)
		}
		r.check(s)
		runtime.Gosched()
	}
}

// check compares a snapshot with what was written, and with what was read
// before.
func (r *reader) check(s *Snapshot[*Map]) {
	generation := s.Token().Generation()
	version, _ := strconv.Atoi(s.ResourceVersion())
	found, ok := r.states.Load(s.ResourceVersion())
	if !ok {
		r.t.Errorf("generation %d: version %q was never published", generation, s.ResourceVersion())
		return
	}
	wrote := found.(wroteState)
	if sum := sumOf(values(s)); sum != wrote.sum {
		r.t.Errorf("generation %d: not the set of version %d: %s", generation, version, contents(s))
	}
	if wrote.named != generation && (!wrote.kept || wrote.named+1 != generation) {
		r.t.Errorf("generation %d shows a list begun under generation %d (kept: %v)", generation, wrote.named, wrote.kept)
	}
	if other, loaded := r.lists.LoadOrStore(generation, wrote.list); loaded && other != wrote.list {
		r.t.Errorf("generation %d shows lists %d and %d", generation, other, wrote.list)
	}
	switch {
	case generation < r.generation:
		r.t.Errorf("back from generation %d to %d", r.generation, generation)
	case wrote.era < r.era, wrote.era == r.era && version < r.version:
		r.t.Errorf("back from version %d to %d, rewinds %d to %d", r.version, version, r.era, wrote.era)
	case wrote.era > r.era && generation == r.generation:
		r.t.Errorf("rewound within generation %d", generation)
	}
	r.generation, r.era, r.version = generation, wrote.era, version
}

// stale reads what there is, which is a whole set as well.
func (h *history) stale() {
	for !h.closed.Load() {
		if s, _ := h.Stale(); s != nil {
			if wrote, ok := h.states.Load(s.ResourceVersion()); !ok || wrote.(wroteState).sum != sumOf(values(s)) {
				h.t.Errorf("Stale: not the set of version %s: %s", s.ResourceVersion(), contents(s))
			}
		}
		runtime.Gosched()
	}
}

// blocking reads and waits, sometimes not for long.
func (h *history) blocking(rnd *rand.Rand) {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		impatient := rnd.IntN(4) == 0
		if impatient {
			go cancel()
		}
		floor := h.fence.Load()
		var err error
		switch rnd.IntN(3) {
		case 0:
			var tok *token.Token
			if tok, err = h.WaitReady(ctx); err == nil && (!tok.WasReady() || tok.Generation() <= floor) {
				h.t.Errorf("WaitReady: generation %d, was ready: %v, %d was over before", tok.Generation(), tok.WasReady(), floor)
			}
		case 1:
			var list []*Map
			if list, err = h.List(ctx); err == nil {
				if _, ok := h.sums.Load(sumOf(slices.Values(list))); !ok {
					h.t.Errorf("List: %d objects that never were a set", len(list))
				}
			}
		case 2:
			if _, err = h.Get(ctx, key("A", "1")); apierrors.IsNotFound(err) {
				err = nil
			}
		}
		cancel()
		switch {
		case errors.Is(err, invalidation.Closed):
			return // and nobody blocks for ever, or the test does
		case err != nil && !(impatient && errors.Is(err, context.Canceled)):
			h.t.Errorf("a reader with all the time of the world: %v", err)
			return
		}
		runtime.Gosched()
	}
}

// revokes ends tokens, current ones and others.
func (h *history) revokes(rnd *rand.Rand) {
	var old *token.Token
	for {
		tok, err := h.WaitReady(context.Background())
		if err != nil {
			return
		}
		if old != nil && old != tok && h.store.Revoke(old, nil) {
			h.t.Errorf("generation %d was ended after %d was ready", old.Generation(), tok.Generation())
		}
		old = tok
		for range rnd.IntN(200) {
			runtime.Gosched()
		}
		if h.store.Revoke(tok, errors.New("so it wants")) {
			if tok.State() != token.Revoked || tok.Context().Err() == nil || !errors.Is(tok.Cause(), invalidation.Requested) {
				h.t.Errorf("Revoke has returned and the token is %v, for %v", tok.State(), tok.Cause())
			}
			h.raise(tok)
		}
	}
}

// changeHooks registers hooks that hear generations in order, and removes them.
func (h *history) changeHooks(rnd *rand.Rand) {
	for !h.closed.Load() {
		var last atomic.Uint64
		hear := func(generation uint64) {
			if was := last.Swap(generation); generation <= was {
				h.t.Errorf("a hook hears of generation %d after %d", generation, was)
			}
		}
		var remove func()
		if rnd.IntN(2) == 0 {
			remove = h.OnReady(func(tok *token.Token) { hear(tok.Generation()) })
		} else {
			remove = h.OnRevoke(func(r *invalidation.Revocation) { hear(r.Generation) })
		}
		for range rnd.IntN(500) {
			runtime.Gosched()
		}
		remove()
	}
}

// checkHooks checks what the pair of hooks has heard that was there all along.
func (h *history) checkHooks(turns int) {
	lines := h.hooks.lines
	assert.Len(h.t, lines, 2*turns, "each generation that was ready, and its end")
	last := uint64(0)
	for i := 0; i+1 < len(lines); i += 2 {
		var ready, revoked uint64
		_, err := fmt.Sscanf(lines[i]+" "+lines[i+1], "ready %d revoked %d", &ready, &revoked)
		if err != nil || ready != revoked || ready <= last {
			h.t.Errorf("hooks heard %q, then %q, after generation %d", lines[i], lines[i+1], last)
		}
		last = ready
	}
}

func values(s *Snapshot[*Map]) func(yield func(*Map) bool) {
	return func(yield func(*Map) bool) {
		for _, obj := range s.All() {
			if !yield(obj) {
				return
			}
		}
	}
}

// sumOf is a checksum of a set, in any order.
func sumOf(objects func(yield func(*Map) bool)) (sum uint64) {
	for obj := range objects {
		f := fnv.New64a()
		_, _ = fmt.Fprint(f, obj.Namespace, "/", obj.Name, "@", obj.ResourceVersion)
		sum += f.Sum64()
	}
	return sum
}
