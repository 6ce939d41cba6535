package linearizability

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/kube-safestore/kube-safestore/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seed replays one run: go test ./linearizability -run NAME -seed=N. The
// interleaving is not the seed's alone, so it may take some -count.
var seed = flag.Uint64("seed", 0, "check the histories of this seed only")

// call is one call of a source. Tokens are named by their generation.
type call struct {
	what       string
	generation uint64
}

// answer is what it returned.
type answer struct {
	generation uint64
	ok         bool
	state      token.State
	err        error
}

// The calls. Revoke and Succeed are two each: the next token is armed, and the old
// one ends, in this order and both before they return. In between, a caller that
// asks twice can see that the old token is no longer current and has not ended.
const (
	current  = "Current"
	state    = "State"
	ready    = "Ready"
	arm      = "Revoke: arm"
	end      = "Revoke: end"
	succeed  = "Succeed: arm"
	wait     = "Wait"
	closeIt  = "Close"
	maxCalls = 14
)

// sequential is the state of the model: how each generation is, the newest last.
type sequential struct {
	states string // a token.State each
	closed bool
}

func (s sequential) current() uint64 { return uint64(len(s.states)) }

func (s sequential) state(generation uint64) token.State {
	return token.State(s.states[generation-1])
}

func (s sequential) with(generation uint64, state token.State) sequential {
	states := []byte(s.states)
	states[generation-1] = byte(state)
	s.states = string(states)
	return s
}

// model is a source as package token's documentation describes it.
var model = porcupine.Model{
	Init: func() any { return sequential{states: string([]byte{byte(token.Pending)})} },
	Step: func(before, input, output any) (bool, any) {
		s, c, a := before.(sequential), input.(call), output.(answer)
		known := c.generation >= 1 && c.generation <= s.current()
		switch c.what {
		case current:
			return a.generation == s.current(), s
		case state:
			return known && a.state == s.state(c.generation), s
		case ready:
			can := c.generation == s.current() && s.state(c.generation) == token.Pending
			if can && a.ok {
				s = s.with(c.generation, token.Ready)
			}
			return a.ok == can, s
		case arm:
			can := c.generation == s.current() && !s.closed
			if can && a.ok {
				s.states += string([]byte{byte(token.Pending)})
			}
			return a.ok == can && a.generation == s.current(), s
		case succeed:
			can := c.generation == s.current() && !s.closed && s.state(c.generation) == token.Ready
			if can && a.ok {
				s.states += string([]byte{byte(token.Ready)})
			}
			return a.ok == can && a.generation == s.current(), s
		case end:
			return c.generation < s.current(), s.with(c.generation, token.Revoked)
		case wait:
			switch {
			case a.err == nil:
				return a.generation <= s.current() && s.state(a.generation) == token.Ready, s
			case errors.Is(a.err, token.ErrClosed):
				return s.closed, s
			default:
				return true, s // its own context ended
			}
		case closeIt:
			s = s.with(s.current(), token.Revoked)
			s.closed = true
			return true, s
		default:
			return false, s
		}
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v → %+v", input, output)
	},
}

// source is what is checked.
type source interface {
	Current() uint64
	State(generation uint64) (token.State, bool)
	Ready(generation uint64) bool
	Revoke(generation uint64) (uint64, bool)
	Succeed(generation uint64) (uint64, bool)
	Wait(context.Context) (uint64, error)
	Close()
}

// record runs one history: goroutines that make random calls, of a source that
// is closed at the end.
func record(s source, seed uint64) []porcupine.Operation {
	const goroutines = 5
	var (
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
		began   = time.Now()
	)
	now := func() int64 { return int64(time.Since(began)) }
	note := func(who int, from int64, c call, a answer) {
		to := now()
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: who, Input: c, Call: from, Output: a, Return: to})
	}
	for who := range goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(who)))
			newest := uint64(1)
			for range maxCalls {
				if rnd.IntN(3) == 0 {
					runtime.Gosched()
				}
				c := call{generation: newest}
				if newest > 1 && rnd.IntN(3) == 0 {
					c.generation = 1 + rnd.Uint64N(newest)
				}
				from := now()
				switch n := rnd.IntN(100); {
				case n < 20:
					newest = s.Current()
					note(who, from, call{what: current}, answer{generation: newest})
				case n < 45:
					if got, known := s.State(c.generation); known {
						c.what = state
						note(who, from, c, answer{state: got})
					}
				case n < 65:
					c.what = ready
					note(who, from, c, answer{ok: s.Ready(c.generation)})
				case n < 85:
					c.what = arm
					move := s.Revoke
					if rnd.IntN(3) == 0 {
						c.what = succeed
						move = s.Succeed
					}
					fresh, ok := move(c.generation)
					newest = max(newest, fresh)
					note(who, from, c, answer{generation: fresh, ok: ok})
					if ok {
						c.what = end
						note(goroutines+who, from, c, answer{}) // within the same time
					}
				case n < 98:
					ctx, stop := context.WithCancel(context.Background())
					go func(patience int) {
						for range patience {
							runtime.Gosched()
						}
						stop()
					}(rnd.IntN(20))
					got, err := s.Wait(ctx)
					note(who, from, call{what: wait}, answer{generation: got, err: err})
				default:
					s.Close()
					note(who, from, call{what: closeIt}, answer{})
				}
			}
		})
	}
	wg.Wait()
	from := now()
	s.Close()
	note(0, from, call{what: closeIt}, answer{})
	return history
}

// check records and checks histories until one is not linearizable, and returns
// its seed.
func check(t *testing.T, n int, make func() source) (bad uint64, found bool) {
	first := rand.Uint64()/2 + 1
	if *seed != 0 {
		first, n = *seed, 1
	}
	unknown := 0
	for i := range n {
		now := first + uint64(i)
		history := record(make(), now)
		switch porcupine.CheckOperationsTimeout(model, history, 10*time.Second) {
		case porcupine.Illegal:
			return now, true
		case porcupine.Unknown:
			unknown++
		}
	}
	assert.LessOrEqual(t, unknown, n/10, "histories that could not be decided in time")
	return 0, false
}

func TestTokenSourceIsLinearizable(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 100
	}
	if bad, found := check(t, n, newReal); found {
		t.Errorf("a history is not linearizable; try again with -seed=%d", bad)
	}
}

// A check that cannot fail proves nothing: each of these bugs must be found.
func TestBugsAreFound(t *testing.T) {
	if bad, found := check(t, 500, func() source { return &plain{states: []token.State{token.Pending}} }); found {
		t.Errorf("a source without a bug is not linearizable, seed %d", bad)
	}
	for _, bug := range []string{lateCaller, revived, lateEnd, skipped, neverReady, twoReady, armedAfterClose} {
		t.Run(bug, func(t *testing.T) {
			if _, found := check(t, 2000, func() source { return &plain{states: []token.State{token.Pending}, bug: bug} }); !found {
				t.Error("it was not found")
			}
		})
	}
}

// real is package token's source.
type real struct {
	*token.Source
	tokens sync.Map // generation → *token.Token
}

func newReal() source {
	r := &real{Source: token.NewSource(context.Background())}
	r.Current()
	return r
}

func (r *real) saw(t *token.Token) uint64 {
	r.tokens.Store(t.Generation(), t)
	return t.Generation()
}

func (r *real) token(generation uint64) *token.Token {
	t, _ := r.tokens.Load(generation)
	found, _ := t.(*token.Token)
	return found
}

var errRevoked = errors.New("revoked")

func (r *real) Current() uint64 { return r.saw(r.Source.Current()) }

func (r *real) State(generation uint64) (token.State, bool) {
	t := r.token(generation)
	if t == nil {
		return 0, false // seen by another goroutine, which has not noted it yet
	}
	return t.State(), true
}

func (r *real) Ready(generation uint64) bool { return r.Source.Ready(r.token(generation)) }

func (r *real) Revoke(generation uint64) (uint64, bool) {
	t, ok := r.Source.Revoke(r.token(generation), errRevoked)
	return r.saw(t), ok
}

func (r *real) Succeed(generation uint64) (uint64, bool) {
	t, ok := r.Source.Succeed(r.token(generation), errRevoked, func(*token.Token) {}, func(*token.Token) {})
	return r.saw(t), ok
}

func (r *real) Wait(ctx context.Context) (uint64, error) {
	t, err := r.Source.Wait(ctx)
	if err != nil {
		return 0, err
	}
	return r.saw(t), nil
}

func (r *real) Close() { r.Source.Close(errRevoked) }

// The bugs.
const (
	lateCaller      = "a late caller acts on a newer generation"
	revived         = "a revoked token becomes ready again"
	lateEnd         = "Revoke returns before the token has ended"
	skipped         = "a generation is left out"
	neverReady      = "Wait returns a token that was not ready"
	twoReady        = "two tokens are ready"
	armedAfterClose = "a token is armed after the end"
)

// plain is a source with one lock and, perhaps, a bug.
type plain struct {
	bug string

	mu     sync.Mutex
	states []token.State
	closed bool
}

func (p *plain) Current() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(len(p.states))
}

func (p *plain) State(generation uint64) (token.State, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states[generation-1], true
}

func (p *plain) Ready(generation uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := uint64(len(p.states))
	switch {
	case p.bug == lateCaller:
		generation = newest
	case p.bug == revived && p.states[generation-1] == token.Revoked && generation != newest:
		p.states[generation-1] = token.Ready
		return true
	}
	if generation != newest || p.states[generation-1] != token.Pending {
		return false
	}
	p.states[generation-1] = token.Ready
	return true
}

func (p *plain) Revoke(generation uint64) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := uint64(len(p.states))
	if p.closed && p.bug != armedAfterClose || generation != newest {
		return newest, false
	}
	p.states = append(p.states, token.Pending)
	if p.bug == skipped {
		p.states[newest-1] = token.Revoked
		p.states = append(p.states, token.Pending)
		return newest + 2, true
	}
	if p.bug == lateEnd {
		go func() {
			runtime.Gosched()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.states[generation-1] = token.Revoked
		}()
		return newest + 1, true
	}
	p.states[generation-1] = token.Revoked
	return newest + 1, true
}

func (p *plain) Succeed(generation uint64) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := uint64(len(p.states))
	if p.closed || generation != newest || p.states[generation-1] != token.Ready {
		return newest, false
	}
	p.states = append(p.states, token.Ready)
	if p.bug != twoReady {
		p.states[generation-1] = token.Revoked
	}
	return newest + 1, true
}

func (p *plain) Wait(ctx context.Context) (uint64, error) {
	for {
		p.mu.Lock()
		newest, closed := uint64(len(p.states)), p.closed
		state := p.states[newest-1]
		p.mu.Unlock()
		switch {
		case state == token.Ready, p.bug == neverReady && state == token.Pending:
			return newest, nil
		case closed:
			return 0, token.ErrClosed
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		runtime.Gosched()
	}
}

func (p *plain) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.states[len(p.states)-1] = token.Revoked
}
