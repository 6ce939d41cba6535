package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// controlled is a controller of the ConfigMaps of a namespace, and the history of
// its work. All work goes on, acting all the time, until it is cut.
type controlled struct {
	*controller.Controller
	maps *safestore.Store[*corev1.ConfigMap]

	mu      sync.Mutex
	entries []workEntry
	over    map[uint64]bool // generations whose end somebody has seen
	wrong   []string
}

// workEntry is that a key's work has begun, or was cut.
type workEntry struct {
	key        types.NamespacedName
	generation uint64
	value      string // what it read, when it began
	cause      error  // why it was cut
}

// control starts a controller, and its store, until the end of the test.
func control(t *testing.T, e *env, config *rest.Config, namespace string, o safestore.Options) *controlled {
	t.Helper()
	c := &controlled{over: map[uint64]bool{}}
	var err error
	c.maps, err = safestore.New[*corev1.ConfigMap](watcher.ListWatch(connect(t, e.Cluster, config).admin.CoreV1().ConfigMaps(namespace)), o)
	require.NoError(t, err)
	c.Controller, err = controller.New(t.Name(), c.reconcile, controller.Options{Workers: 8}, controller.For(c.maps))
	require.NoError(t, err)
	c.Readiness().OnRevoke(func(r *invalidation.Revocation) { c.ended(r.Generation) })
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, c.maps.Run(ctx)) })
	running.Go(func() { assert.NoError(t, c.Run(ctx)) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		assert.Empty(t, c.wrong)
	})
	return c
}

func (c *controlled) ended(generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over[generation] = true
}

func (c *controlled) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	maps, err := c.maps.In(req.Snapshot)
	if err != nil {
		return controller.Result{}, err
	}
	value := ""
	if m, err := maps.Get(req.Key); err == nil {
		value = subject.StateOf(m).Value
	}
	generation := req.Snapshot.Token().Generation()
	c.enter(workEntry{key: req.Key, generation: generation, value: value})
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for c.act(ctx, req) {
		<-again.C
	}
	c.enter(workEntry{key: req.Key, generation: generation, cause: context.Cause(ctx)})
	return controller.Result{}, nil // it says nothing of being cut
}

// act stands for a request to the server. It is wrong if it could be made after the
// end of the token, or after somebody has seen that.
func (c *controlled) act(ctx context.Context, req controller.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := req.Snapshot.Token()
	over := c.over[t.Generation()] || t.State() == token.Revoked
	if ctx.Err() != nil {
		return false
	}
	if over {
		c.wrong = append(c.wrong, fmt.Sprintf("%s acts under %d, which is over", req.Key, t.Generation()))
	}
	return !over
}

func (c *controlled) enter(e workEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, before := range c.entries {
		if before.generation > e.generation && e.cause == nil {
			c.wrong = append(c.wrong, fmt.Sprintf("%s begins under %d after %d", e.key, e.generation, before.generation))
		}
	}
	c.entries = append(c.entries, e)
}

// begun returns what the work of a generation read when it began, by name.
func (c *controlled) begun(generation uint64) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := map[string]string{}
	for _, e := range c.entries {
		if e.generation == generation && e.cause == nil {
			values[e.key.Name] = e.value
		}
	}
	return values
}

// cut returns why the work of a generation was cut, by name.
func (c *controlled) cut(generation uint64) map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	causes := map[string]error{}
	for _, e := range c.entries {
		if e.generation == generation && e.cause != nil {
			causes[e.key.Name] = e.cause
		}
	}
	return causes
}

// testFenced breaks what a controller works on, and mends it. Between the two, the
// server's objects change.
func testFenced(t *testing.T, e *env, c *controlled, namespace string, reasons []invalidation.Reason, breaks, mends func()) {
	t.Helper()
	before := map[string]string{"deleted": "0", "recreated": "0", "untouched": "0", "updated": "0"}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ready, err := c.Readiness().WaitReady(ctx)
	require.NoError(t, err)
	eventually(t, "work on all", func() bool { return len(c.begun(ready.Generation())) == len(before) })
	assert.Equal(t, before, c.begun(ready.Generation()))

	breaks()
	select {
	case <-ready.Context().Done():
	case <-ctx.Done():
		require.FailNow(t, "not revoked")
	}
	c.ended(ready.Generation()) // nothing is done under it from here on
	r, ok := errors.AsType[*invalidation.Revocation](ready.Cause())
	require.True(t, ok)
	assert.Contains(t, reasons, r.Reason)
	eventually(t, "all work is cut", func() bool { return len(c.cut(ready.Generation())) == len(before) })
	for name, cause := range c.cut(ready.Generation()) {
		assert.Same(t, r, cause, name)
	}

	mends()
	// What was cut is resumed, and what has changed is worked on, under a generation
	// that has seen it.
	after := map[string]string{}
	for key, state := range e.configMaps(t, namespace) {
		after[key.Name] = state.Value
	}
	after["deleted"] = ""
	eventually(t, "work on all that there is now", func() bool {
		return assert.ObjectsAreEqual(after, c.begun(c.Readiness().Token().Generation()))
	})
	assert.Greater(t, c.Readiness().Token().Generation(), ready.Generation())
	assert.Equal(t, before, c.begun(ready.Generation()), "nothing of it was seen under the old one")
}

// No reconcile runs on data that was revoked: C54, with the real server.
func TestControllersAreFenced(t *testing.T) {
	t.Parallel()
	t.Run("a right is withdrawn", func(t *testing.T) {
		t.Parallel()
		e := share(t)
		namespace := e.namespace(t)
		e.seed(t, namespace)
		o := fast()
		o.Watch.WatchTimeout = time.Second
		c := control(t, e, e.user(t, namespace), namespace, o)
		e.grant(t, namespace)
		testFenced(t, e, c, namespace, []invalidation.Reason{invalidation.Forbidden},
			func() { e.withdraw(t, namespace) },
			func() {
				e.change(t, namespace, "1")
				e.grant(t, namespace)
			})
	})
	t.Run("the API server restarts", func(t *testing.T) {
		t.Parallel()
		e := own(t)
		namespace := e.namespace(t)
		e.seed(t, namespace)
		replica, err := e.StartReplica(t.Context())
		require.NoError(t, err)
		c := control(t, e, replica.Config(), namespace, within(3*time.Second))
		testFenced(t, e, c, namespace, []invalidation.Reason{invalidation.Stale, invalidation.Stuck},
			func() { require.NoError(t, replica.Kill()) },
			func() {
				e.change(t, namespace, "1")
				require.NoError(t, replica.Start(t.Context()))
			})
	})
	t.Run("a stream stalls", func(t *testing.T) {
		t.Parallel()
		e := share(t)
		g, config := throughGateway(t, e.Config())
		namespace := e.namespace(t)
		e.seed(t, namespace)
		c := control(t, e, config, namespace, silence(2*time.Second))
		testFenced(t, e, c, namespace, []invalidation.Reason{invalidation.Stuck, invalidation.Stale},
			func() {
				g.StallNew(true)
				assert.NotZero(t, g.Stall())
				e.change(t, namespace, "1")
			},
			func() { g.StallNew(false); g.Release() })
	})
}
