package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/gateway"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

// together runs tests at the same time, whatever -parallel says: what they do
// most is wait.
func together(t *testing.T, tests map[string]func(*testing.T)) {
	t.Helper()
	var running sync.WaitGroup
	for name, test := range tests {
		running.Go(func() { t.Run(name, test) })
	}
	running.Wait()
}

// within are options with a bound, for which little must happen to notice.
func within(bound time.Duration) safestore.Options {
	o := fast()
	o.MaxStaleness = bound
	return o
}

// throughGateway starts a gateway to an API server, and returns it with the
// administrator's access through it.
func throughGateway(t *testing.T, config *rest.Config) (*gateway.Gateway, *rest.Config) {
	t.Helper()
	g, err := gateway.Start(config)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g, g.Config()
}

// reconnecting returns an access whose connections the returned function closes,
// those that are idle: what a program gives to the store as Reconnect.
func reconnecting(config *rest.Config) (*rest.Config, func()) {
	config = rest.CopyConfig(config)
	var transport http.RoundTripper
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		transport = next
		return next
	})
	return config, func() { utilnet.CloseIdleConnectionsFor(transport) }
}

// counter is an object that holds a number which grows, several times a second:
// by the number that was read it can be told how old the answer was.
type counter struct {
	key types.NamespacedName

	mu        sync.Mutex
	committed []time.Time // when the server had answered that the number is written; zero if it did not
}

// count writes to a counter until the test ends, by a connection that nothing
// disturbs.
func (e *env) count(t *testing.T, namespace string) *counter {
	t.Helper()
	c := &counter{key: types.NamespacedName{Namespace: namespace, Name: "counter"}}
	e.create(t, namespace, c.key.Name, "0")
	c.committed = []time.Time{time.Now()}
	ctx, stop := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	writer.Go(func() {
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-pace.C:
				c.write(ctx, e.admin)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		writer.Wait()
	})
	return c
}

// write writes the next number. One whose write fails may have been committed all
// the same, and is not used again.
func (c *counter) write(ctx context.Context, client kubernetes.Interface) {
	c.mu.Lock()
	next := len(c.committed)
	c.committed = append(c.committed, time.Time{})
	c.mu.Unlock()
	obj := configMap(c.key.Namespace, c.key.Name, strconv.Itoa(next))
	if _, err := client.CoreV1().ConfigMaps(c.key.Namespace).Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
		return
	}
	c.mu.Lock()
	c.committed[next] = time.Now()
	c.mu.Unlock()
}

// at returns the greatest number that was known to be committed at that time.
func (c *counter) at(moment time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.committed) - 1; i > 0; i-- {
		if at := c.committed[i]; !at.IsZero() && !at.After(moment) {
			return i
		}
	}
	return 0
}

// value returns what a view holds of the counter.
func (c *counter) value(v *subject.View) (int, error) {
	return strconv.Atoi(v.Contents()[c.key].Value)
}

// reads are what a reader of a store met with.
type reads struct {
	bound   time.Duration // zero for none
	counter *counter      // nil to look at readiness alone

	mu     sync.Mutex
	n      int
	spells []spell
	wrong  []string
	oldest time.Duration // how old an answer was, at most

	stop func() // and wait for the reader's end
}

// spell is a time in which reads succeeded, or failed, one after another.
type spell struct {
	from, to   time.Time // of the first and the last one, when they began
	err        error     // of the first one; nil if they succeeded
	generation uint64    // of the first one
}

// watchReads reads the store all the time until the test ends, and checks each
// answer: no read that begins at a time succeeds with less than was committed the
// bound before, and none goes back.
func watchReads(t *testing.T, s *subject.Subject, c *counter, bound time.Duration) *reads {
	t.Helper()
	r := &reads{bound: bound, counter: c}
	ctx, cancel := context.WithCancel(context.Background())
	var reader sync.WaitGroup
	reader.Go(func() {
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		last := 0
		for {
			select {
			case <-pace.C:
				last = r.read(s, last)
			case <-ctx.Done():
				return
			}
		}
	})
	r.stop = sync.OnceFunc(func() {
		cancel()
		reader.Wait()
		assert.Empty(t, r.wrong, s.Name)
	})
	t.Cleanup(r.stop)
	return r
}

func (r *reads) read(s *subject.Subject, last int) (value int) {
	begun := time.Now()
	view, err := s.View()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	generation := uint64(0)
	if err == nil {
		generation = view.Token.Generation()
	}
	if n := len(r.spells); n == 0 || (r.spells[n-1].err == nil) != (err == nil) || r.spells[n-1].generation != generation {
		r.spells = append(r.spells, spell{from: begun, err: err, generation: generation})
	}
	r.spells[len(r.spells)-1].to = begun
	if err != nil {
		if !errors.Is(err, safestore.ErrNotReady) || apierrors.IsNotFound(err) {
			r.wrong = append(r.wrong, err.Error())
		}
		return last
	}
	if r.counter == nil {
		return last
	}
	value, err = r.counter.value(view)
	if err != nil || value < last {
		r.wrong = append(r.wrong, fmt.Sprintf("counter %d after %d in generation %d: %v", value, last, generation, err))
	}
	r.counter.mu.Lock()
	var next time.Time // when this answer became old
	for _, at := range r.counter.committed[value+1:] {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	r.counter.mu.Unlock()
	if !next.IsZero() {
		r.oldest = max(r.oldest, begun.Sub(next))
	}
	if r.bound == 0 {
		return value
	}
	if least := r.counter.at(begun.Add(-r.bound)); value < least {
		r.wrong = append(r.wrong, fmt.Sprintf("counter %d, but %d had been committed %v before, generation %d", value, least, r.bound, generation))
	}
	return value
}

// failures returns the spells in which reads failed, after they had succeeded
// once.
func (r *reads) failures() []spell {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed []spell
	ready := false
	for _, s := range r.spells {
		ready = ready || s.err == nil
		if ready && s.err != nil {
			failed = append(failed, s)
		}
	}
	return failed
}

// String tells what the reader met with.
func (r *reads) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := fmt.Sprintf("%d reads, oldest answer %v", r.n, r.oldest.Round(time.Millisecond))
	for _, spell := range r.spells {
		s += fmt.Sprintf("; generation %d for %v", spell.generation, spell.to.Sub(spell.from).Round(time.Millisecond))
	}
	return s
}

// fault is one that a store meets with, and gets over by itself.
type fault struct {
	begun time.Time
	token *token.Token // that was ready when it began
	over  time.Time    // when the way to the server was whole again; zero if it was all the time
}

// begin notes that a fault begins now.
func begin(ready *token.Token) *fault { return &fault{begun: time.Now(), token: ready} }

// awaitRevoked waits until the fault is found, checks that it is for that reason
// and within the limit, and reports how long it took.
func (f *fault) awaitRevoked(t *testing.T, s *subject.Subject, limit time.Duration, reasons ...invalidation.Reason) *invalidation.Revocation {
	t.Helper()
	r := s.AwaitRevoked(t, f.token)
	assert.Contains(t, reasons, r.Reason, "%v", r)
	assert.Equal(t, f.token.Generation(), r.Generation)
	took := r.Since.Sub(f.begun)
	assert.LessOrEqual(t, took, limit, "found late: %v", r)
	t.Logf("revoked for %s %v after the fault, allowed %v: %v", r.Reason, round(took), limit, r.Cause)
	f.over = later(f.over, r.Since)
	return r
}

// awaitReady waits until the store has healed, checks that it did so within the
// limit, and reports how long it took.
func (f *fault) awaitReady(t *testing.T, s *subject.Subject, limit time.Duration) *token.Token {
	t.Helper()
	again := s.AwaitReady(t)
	took := max(0, time.Since(f.over))
	assert.Greater(t, again.Generation(), f.token.Generation())
	assert.LessOrEqual(t, took, limit, "healed late")
	t.Logf("ready again %v after it could be, generation %d", round(took), again.Generation())
	return again
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// pass lets time go by.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
