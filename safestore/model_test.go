package safestore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// seed replays one run: go test -run TestModel ./safestore -seed=N
var seed = flag.Uint64("seed", 0, "run the random tests of package safestore with this seed only")

// seeds calls f with n seeds, or with the one given on the command line.
func seeds(t *testing.T, n int, f func(t *testing.T, seed uint64)) {
	if *seed != 0 {
		f(t, *seed)
		return
	}
	first := rand.Uint64() / 2
	for i := range n {
		now := first + uint64(i)
		f(t, now)
		if t.Failed() {
			t.Fatalf("replay with: go test ./safestore -run '^%s$' -seed=%d", t.Name(), now)
		}
	}
}

// TestModel runs random sequences of everything that can happen to a store, and
// compares the store after each step with a plain model of the guarantees:
//
//   - fenced (1): what was revoked is over, and is never read again
//   - complete (2): a read shows a whole set, as it was published and changed
//   - monotonic (3): generations grow, and versions unless the server was rewound
//   - explained (5): each error says which generation and why
//   - ordered hooks (6): each hook hears each transition once and in order
//   - clean end (10): everybody who waits is released
func TestModel(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 300
	}
	seeds(t, n, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			run := newModelRun(t, seed)
			for range 50 {
				run.step()
				synctest.Wait()
				run.check()
				if t.Failed() {
					break
				}
			}
			run.end()
			synctest.Wait()
			run.check()
			if t.Failed() {
				t.Logf("seed %d, steps:\n  %s", seed, strings.Join(run.steps, "\n  "))
			}
		})
	})
}

// model is what a store should be.
type model struct {
	generation uint64
	ready      bool
	closed     bool
	reason     invalidation.Reason // of the newest end, empty if there was none

	set      map[types.NamespacedName]item // the newest complete set; nil if there is none
	version  int
	under    uint64                        // the generation that the set was published for
	held     bool                          // the watcher has a watch on it
	proven   time.Time                     // the newest proof that it held all there was
	unproven bool                          // a proof is all that the current token needs
	building map[types.NamespacedName]item // nil if no set is being built
	named    uint64                        // the generation when it was begun

	hooks []*modelHook
	waits []*modelWait
}

// item is an object, in the model.
type item struct {
	uid     int
	version int
}

func (i item) String() string { return fmt.Sprintf("%d@%d", i.uid, i.version) }

// modelHook is a registered hook: what it should have heard, and what it did.
type modelHook struct {
	name      string
	revoke    bool // OnRevoke, not OnReady
	panics    bool
	remove    func()
	removed   bool
	want, got []uint64
	wrong     string // what it found, at a call
}

// modelWait is a reader that is blocked until further notice.
type modelWait struct {
	what   string
	cancel context.CancelFunc
	done   chan waited
}

type waited struct {
	generation uint64 // of the answer, 0 if the read says nothing about it
	what       string // the answer
	err        error
}

// end of a generation, in the model and for readers.
func (m *model) end(reason invalidation.Reason, provable bool) {
	m.unproven = provable && (m.ready || m.unproven)
	if m.ready {
		for _, h := range m.hooks {
			if h.revoke && !h.removed {
				h.want = append(h.want, m.generation)
			}
		}
	}
	m.ready = false
	m.reason = reason
	if reason == invalidation.Closed {
		m.closed = true
		return
	}
	m.generation++
}

// publish makes the set that was built the current one.
func (m *model) publish(version int, now time.Time) {
	if m.ready && m.named == m.generation { // kept through the relist
		m.end(invalidation.Relist, false)
		m.named = m.generation
	}
	m.set, m.version, m.under, m.proven = m.building, version, m.named, now
	m.building, m.held = nil, true
	if m.named != m.generation || m.closed {
		return // revoked since the list began, which proves nothing about what follows
	}
	m.grant()
}

// grant makes the current token ready.
func (m *model) grant() {
	m.ready, m.unproven = true, false
	for _, h := range m.hooks {
		if !h.revoke && !h.removed {
			h.want = append(h.want, m.generation)
		}
	}
}

// modelRun is one random run.
type modelRun struct {
	*rig
	t     *testing.T
	rnd   *rand.Rand
	model model
	steps []string

	fake     bool                  // the source is a fake: versions mean nothing
	tokens   []*token.Token        // every one that was seen, one per generation
	ends     []invalidation.Reason // of those that are over
	versions int                   // the server's
	rewound  bool                  // the next set may be older than this one
	uids     int
	seen     struct { // by readers
		generation uint64
		version    int
		rewinds    int
	}
	rewinds int
}

func newModelRun(t *testing.T, seed uint64) *modelRun {
	r := &modelRun{rig: newRig(t), t: t, rnd: rand.New(rand.NewPCG(seed, 0)), versions: 100}
	r.model.generation = 1
	r.tokens = []*token.Token{r.Token()}
	if r.rnd.IntN(8) == 0 {
		r.fake = true
		r.Unordered()
	}
	return r
}

func (r *modelRun) note(format string, args ...any) {
	r.steps = append(r.steps, fmt.Sprintf(format, args...))
}

func (r *modelRun) chance(percent int) bool { return r.rnd.IntN(100) < percent }

// step does one random thing, to the store and to the model.
func (r *modelRun) step() {
	switch n := r.rnd.IntN(100); {
	case n < 30:
		r.list()
	case n < 50:
		r.event()
	case n < 55:
		if r.model.held {
			r.versions++
			r.note("bookmark %d", r.versions)
			r.Advance(strconv.Itoa(r.versions))
			r.model.version = r.versions
		}
	case n < 58:
		r.prove()
	case n < 66:
		r.seeTrouble()
	case n < 74:
		r.programRevokes()
	case n < 82:
		r.changeHooks()
	case n < 92:
		r.read()
	case n < 96:
		r.abandon()
	case n < 99:
		d := time.Duration(r.rnd.IntN(3)) * time.Second
		r.note("%v pass", d)
		time.Sleep(d)
	default:
		if r.chance(20) {
			r.end()
		}
	}
}

// list takes the building of a set one step further.
func (r *modelRun) list() {
	m := &r.model
	switch {
	case m.building == nil || r.chance(5):
		if m.ready && r.chance(70) { // the default policy; else the token is kept
			r.revoke(invalidation.Decision{Revoke: invalidation.Relist, Recovery: invalidation.ListAll}, nil)
		}
		r.note("begin")
		r.Begin()
		m.building, m.named, m.held = map[types.NamespacedName]item{}, m.generation, false
	case r.chance(70):
		k, i := r.key(), item{version: 1 + r.rnd.IntN(r.versions)}
		i.uid = r.uid(m.set[k].uid)
		if old, ok := m.set[k]; ok && r.chance(50) {
			i = old // unchanged since the last list
		}
		if r.chance(10) {
			r.note("build deleted %v", k)
			assert.NoError(r.t, r.Build(watch.Deleted, r.object(k, i)))
			delete(m.building, k)
			return
		}
		r.note("build %v=%v", k, i)
		assert.NoError(r.t, r.Build(watch.Added, r.object(k, i)))
		m.building[k] = i
	default:
		if r.rewound {
			r.rewound = false
			r.versions = r.versions/2 + 1
			r.rewinds++
		} else {
			r.versions++
		}
		// What is in a set is never newer than the set.
		for k, i := range m.building {
			if i.version > r.versions {
				i.version = r.versions
				m.building[k] = i
				assert.NoError(r.t, r.Build(watch.Added, r.object(k, i)))
			}
		}
		r.note("publish %d", r.versions)
		r.put(r.t, strconv.Itoa(r.versions))
		before := m.generation
		m.publish(r.versions, time.Now())
		if m.generation > before {
			r.armed()
		}
	}
}

// event applies a change, a replay (C36) or nonsense.
func (r *modelRun) event() {
	m := &r.model
	if !m.held {
		return // no watch is open
	}
	k := r.key()
	old, exists := m.set[k]
	switch n := r.rnd.IntN(100); {
	case n < 50:
		r.versions += 1 + r.rnd.IntN(3)
		i := item{r.uid(old.uid), r.versions}
		r.apply(watch.Modified, k, i, nil)
		m.set[k] = i
		r.move()
	case n < 70:
		r.versions++
		r.apply(watch.Deleted, k, item{old.uid, r.versions}, nil)
		if exists || r.fake {
			r.move()
		}
		delete(m.set, k)
	case n < 75 && exists:
		r.apply(watch.Deleted, k, old, nil) // at the object's own version
		delete(m.set, k)
	case n < 85 && exists && !r.fake:
		r.apply(watch.Modified, k, old, nil) // seen before
	case n < 90 && exists && !r.fake && old.version > 1:
		r.apply(watch.Deleted, k, item{old.uid, old.version - 1}, nil) // of its predecessor
	case n < 95 && !exists && !r.fake && m.version > 1:
		r.apply(watch.Added, k, item{r.uid(0), m.version - 1}, watcher.ErrOutOfOrder)
	default:
		r.note("an object without a name")
		assert.Error(r.t, r.Apply(watch.Added, &Map{}))
	}
}

// move moves the set's version to the server's.
func (r *modelRun) move() {
	if !r.fake {
		r.model.version = r.versions
	}
}

func (r *modelRun) apply(event watch.EventType, k types.NamespacedName, i item, want error) {
	r.note("%s %v=%v", event, k, i)
	assert.ErrorIs(r.t, r.Apply(event, r.object(k, i)), want)
}

// seeTrouble lets the watcher see something that ends readiness.
func (r *modelRun) seeTrouble() {
	seen := []invalidation.Sighting{invalidation.VersionExpired, invalidation.VersionRewound, invalidation.NotKnown,
		invalidation.NotAllowed, invalidation.NotServed, invalidation.NotUsable,
		invalidation.StreamStuck, invalidation.OutOfTouch}[r.rnd.IntN(8)]
	r.rewound = r.rewound || seen == invalidation.VersionRewound
	r.revoke(invalidation.Default(invalidation.Observation{Seen: seen}), errors.New("what was seen"))
	r.model.building = nil // whatever was being listed, a new list comes next
}

// prove brings a proof that the set holds all there was a moment ago.
func (r *modelRun) prove() {
	m := &r.model
	if !m.held {
		return
	}
	asOf := time.Now()
	time.Sleep(time.Duration(r.rnd.IntN(100)) * time.Millisecond)
	r.note("prove")
	r.undamp()
	same(r, 0, r.Prove(watcher.Proof{AsOf: asOf}), "wait")
	m.proven = asOf
	if m.unproven && !m.closed {
		m.under = m.generation
		m.grant()
	}
}

// revoke ends a token from the watcher's side. A ready one must end, and for
// that reason. While none is ready, the trouble may or may not be worth a
// generation of its own.
func (r *modelRun) revoke(d invalidation.Decision, cause error) {
	m := &r.model
	r.note("revoke for %s, drop %v", d.Revoke, d.Drop)
	r.writer.Revoke(d, cause)
	m.held = m.held && d.Recovery != invalidation.ListAll
	if d.Drop {
		m.set = nil
	}
	if m.closed || !m.ready && r.Token().Generation() == m.generation {
		return
	}
	m.end(d.Revoke, d.Recovery != invalidation.ListAll)
	r.armed()
}

// armed notes the token that has become current.
func (r *modelRun) armed() {
	r.ends = append(r.ends, r.model.reason)
	if !r.model.closed {
		r.tokens = append(r.tokens, r.Token())
	}
}

func (r *modelRun) programRevokes() {
	m := &r.model
	i := r.rnd.IntN(len(r.tokens))
	if r.chance(60) {
		i = len(r.tokens) - 1
	}
	tok := r.tokens[i]
	want := i == len(r.tokens)-1 && !m.closed
	if r.chance(5) {
		tok, want = nil, false
	}
	r.note("the program revokes token %d of %d", i+1, len(r.tokens))
	assert.Equal(r.t, want, r.store.Revoke(tok, errors.New("so it wants")))
	if want {
		m.end(invalidation.Requested, false)
		r.armed()
	}
}

func (r *modelRun) changeHooks() {
	m := &r.model
	if len(m.hooks) > 0 && r.chance(40) {
		h := m.hooks[r.rnd.IntN(len(m.hooks))]
		r.note("remove %s", h.name)
		h.remove()
		h.removed = true
		return
	}
	h := &modelHook{name: fmt.Sprint("hook ", len(m.hooks)), revoke: r.chance(50), panics: r.chance(30)}
	m.hooks = append(m.hooks, h)
	r.note("%s is registered, for revocations %v, panics %v", h.name, h.revoke, h.panics)
	if h.revoke {
		h.remove = r.OnRevoke(func(rev *invalidation.Revocation) { r.heard(h, rev.Generation) })
		return
	}
	h.remove = r.OnReady(func(tok *token.Token) { r.heard(h, tok.Generation()) })
	if m.ready {
		h.want = append(h.want, m.generation)
	}
}

func (r *modelRun) heard(h *modelHook, generation uint64) {
	h.got = append(h.got, generation)
	if h.revoke {
		if s, err := r.Snapshot(); err == nil && s.Token().Generation() <= generation {
			h.wrong = fmt.Sprintf("generation %d can be read after its end", generation)
		}
	} else if s, err := r.Snapshot(); err == nil && s.Token().Generation() < generation {
		h.wrong = fmt.Sprintf("ready for %d, and %d is read", generation, s.Token().Generation())
	}
	if h.panics {
		panic("as a hook may")
	}
}

// read starts a reader that waits for as long as it takes, or for a while.
func (r *modelRun) read() {
	ctx, cancel := context.WithCancel(r.t.Context())
	if r.chance(30) {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.rnd.IntN(3))*time.Second)
	}
	w := &modelWait{cancel: cancel, done: make(chan waited, 1)}
	k := r.key()
	var read func() waited
	switch r.rnd.IntN(3) {
	case 0:
		w.what = "WaitReady"
		read = func() waited {
			tok, err := r.WaitReady(ctx)
			if err != nil {
				return waited{err: err}
			}
			return waited{generation: tok.Generation()}
		}
	case 1:
		w.what = "Get " + k.String()
		read = func() waited {
			obj, err := r.Get(ctx, k)
			if apierrors.IsNotFound(err) {
				return waited{what: k.String() + " absent"}
			}
			if err != nil {
				return waited{err: err}
			}
			return waited{what: fmt.Sprintf("%s %s@%s", k, obj.UID, obj.ResourceVersion)}
		}
	case 2:
		w.what = "List"
		read = func() waited {
			list, err := r.List(ctx)
			return waited{what: fmt.Sprint(len(list)), err: err}
		}
	}
	r.note("a reader begins: %s", w.what)
	r.model.waits = append(r.model.waits, w)
	go func() { w.done <- read() }()
}

// abandon lets a waiting reader lose patience.
func (r *modelRun) abandon() {
	if len(r.model.waits) > 0 {
		w := r.model.waits[r.rnd.IntN(len(r.model.waits))]
		r.note("%s gives up", w.what)
		w.cancel()
	}
}

// end closes the store.
func (r *modelRun) end() {
	if r.model.closed {
		return
	}
	r.note("close")
	r.close(errors.New("the end"))
	r.model.end(invalidation.Closed, false)
	r.ends = append(r.ends, invalidation.Closed)
}

// check compares the store with the model. All is quiet.
func (r *modelRun) check() {
	m := &r.model
	state := token.Pending
	switch {
	case m.closed:
		state = token.Revoked
	case m.ready:
		state = token.Ready
	}
	same(r, m.generation, r.Token().Generation(), "generation")
	same(r, state, r.Token().State(), "state")
	for i, reason := range r.ends {
		rev, ok := context.Cause(r.tokens[i].Context()).(*invalidation.Revocation)
		if r.hold(ok, "generation %d is over", i+1) {
			same(r, reason, rev.Reason, "why a generation ended")
			same(r, uint64(i+1), rev.Generation, "which generation ended")
		}
	}

	snapshot, err := r.Snapshot()
	if m.ready {
		if r.hold(err == nil, "ready, and Snapshot fails: %v", err) {
			r.checkSnapshot(snapshot)
		}
		_, err = r.Get(context.Background(), r.key())
		r.hold(err == nil || apierrors.IsNotFound(err), "who need not wait is answered: %v", err)
		_, err = r.Get(over(), r.key())
		r.hold(errors.Is(err, context.Canceled), "whose work is over is not: %v", err)
	} else {
		r.hold(snapshot == nil, "a snapshot beside an error")
		r.checkError(err, false)
		_, err = r.Get(over(), r.key())
		r.checkError(err, true)
		_, err = r.List(over())
		r.checkError(err, true)
		_, err = r.WaitReady(over())
		r.checkError(err, true)
	}

	stale, age := r.Stale()
	same(r, m.set == nil, stale == nil, "there is nothing to read knowingly")
	if m.set != nil && stale != nil {
		same(r, r.contents(), contents(stale), "the last snapshot")
		same(r, m.under, stale.Token().Generation(), "the last snapshot's generation")
		same(r, time.Since(m.proven), age, "age")
	}

	for _, h := range m.hooks {
		r.hold(slices.Equal(h.want, h.got), "%s (of revocations: %v) should have heard %v, heard %v", h.name, h.revoke, h.want, h.got)
		r.hold(h.wrong == "", "%s: %s", h.name, h.wrong)
	}
	m.waits = slices.DeleteFunc(m.waits, r.checkWait)
}

// hold fails the run if something does not.
func (r *modelRun) hold(ok bool, format string, args ...any) bool {
	if !ok {
		r.t.Helper()
		r.t.Errorf(format, args...)
	}
	return ok
}

func same[V comparable](r *modelRun, want, got V, what string) {
	if want != got {
		r.t.Helper()
		r.t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

// checkSnapshot checks a read of a ready store: complete and monotonic.
func (r *modelRun) checkSnapshot(s *Snapshot[*Map]) {
	m := &r.model
	same(r, r.contents(), contents(s), "a whole set")
	same(r, len(m.set), s.Len(), "count")
	same(r, strconv.Itoa(m.version), s.ResourceVersion(), "version")
	same(r, m.generation, s.Token().Generation(), "the generation that vouches")
	r.hold(m.generation >= r.seen.generation, "back from generation %d to %d", r.seen.generation, m.generation)
	r.hold(m.version >= r.seen.version || r.rewinds > r.seen.rewinds, "back from version %d to %d", r.seen.version, m.version)
	r.seen.generation, r.seen.version, r.seen.rewinds = m.generation, m.version, r.rewinds
}

// checkError checks what a read of a store that is not ready fails with.
func (r *modelRun) checkError(err error, waited bool) {
	m := &r.model
	e, ok := err.(*NotReadyError)
	if !r.hold(ok && errors.Is(err, ErrNotReady), "not ready, and the error is %v", err) {
		return
	}
	same(r, m.generation, e.Generation, "the error's generation")
	r.hold(!apierrors.IsNotFound(err) && !errors.Is(err, ErrNotStarted), "says what is not so: %v", err)
	same(r, m.reason == "", e.Revocation == nil, "the error has no revocation")
	if m.reason != "" {
		r.hold(errors.Is(err, m.reason) && strings.Contains(err.Error(), string(m.reason)), "%s is not in: %v", m.reason, err)
	}
	if waited && !m.closed {
		r.hold(errors.Is(err, context.Canceled), "the reader's context ended, which is not in: %v", err)
	}
}

// checkWait reports whether a waiting reader has got its answer, and whether
// that is right: it waits if, and only if, there is nothing to tell it.
func (r *modelRun) checkWait(w *modelWait) bool {
	m := &r.model
	var got waited
	select {
	case got = <-w.done:
		w.cancel()
	default:
		r.hold(!m.ready && !m.closed, "%s still waits", w.what)
		return false
	}
	switch {
	case m.ready && got.err == nil:
		r.hold(got.generation == 0 || got.generation == m.generation, "%s: generation %d", w.what, got.generation)
		switch what, k, _ := strings.Cut(w.what, " "); what {
		case "List":
			same(r, strconv.Itoa(len(m.set)), got.what, w.what)
		case "Get":
			want := k + " absent"
			for at, i := range m.set {
				if at.String() == k {
					want = k + " " + i.String()
				}
			}
			same(r, want, got.what, w.what)
		}
	case m.closed && errors.Is(got.err, invalidation.Closed):
		r.checkError(got.err, false)
	default:
		r.hold(errors.Is(got.err, context.Canceled) || errors.Is(got.err, context.DeadlineExceeded),
			"%s ended with %v", w.what, got.err)
		if e, ok := got.err.(*NotReadyError); ok && e.Ready { // it was its context alone
			r.hold(m.ready, "%s is told that the store is ready: %v", w.what, got.err)
			same(r, m.generation, e.Generation, "the generation that is ready")
			return true
		}
		r.checkError(got.err, false)
	}
	return true
}

func (r *modelRun) contents() string {
	var lines []string
	for k, i := range maps.All(r.model.set) {
		lines = append(lines, fmt.Sprintf("%s=%v", k, i))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

func (r *modelRun) key() types.NamespacedName {
	return key(string(rune('A'+r.rnd.IntN(2))), string(rune('a'+r.rnd.IntN(3))))
}

// uid is that of an object whose last one was old: mostly the same.
func (r *modelRun) uid(old int) int {
	if old == 0 || r.chance(10) {
		r.uids++
		return r.uids
	}
	return old
}

func (r *modelRun) object(k types.NamespacedName, i item) *Map {
	obj := mapOf(k.Namespace, k.Name, strconv.Itoa(i.version))
	obj.UID = types.UID(strconv.Itoa(i.uid))
	return obj
}
