package health_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/health"
)

// mount puts a check where the documentation says.
func mount(c *health.Check) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/readyz", c)
	mux.Handle("/readyz/{check...}", c)
	return mux
}

// The answers are those of kube-apiserver, byte for byte. They are compared with a
// real one in test/e2e.
func TestFormat(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		h := mount(health.Ready(0, w.pods, w.nodes))
		assertGet(t, h, "/readyz", 500, "[-]pods failed: reason withheld\n[-]nodes failed: reason withheld\nreadyz check failed\n")
		assertGet(t, h, "/readyz/pods", 500, "internal server error: pods is not ready: Run was not called\n")

		w.run()
		assertGet(t, h, "/readyz", 200, "ok")
		assertGet(t, h, "/readyz?verbose", 200, "[+]pods ok\n[+]nodes ok\nreadyz check passed\n")
		assertGet(t, h, "/readyz/", 200, "ok")
		assertGet(t, h, "/readyz/pods", 200, "ok")
		code, _ := get(t, h, "/readyz/jobs")
		assert.Equal(t, 404, code)

		w.refuse(nodes)
		assertGet(t, h, "/readyz", 500, "[+]pods ok\n[-]nodes failed: reason withheld\nreadyz check failed\n")
		assertGet(t, h, "/readyz?exclude=nodes", 200, "ok")
		assertGet(t, h, "/readyz?verbose&exclude=nodes", 200, "[+]pods ok\n[+]nodes excluded: ok\nreadyz check passed\n")
		assertGet(t, h, "/readyz?verbose=1&exclude=nodes&exclude=y&exclude=x", 200, "[+]pods ok\n[+]nodes excluded: ok\n"+
			"warn: some health checks cannot be excluded: no matches for \"x\",\"y\"\nreadyz check passed\n")
		assertGet(t, h, "/readyz/pods", 200, "ok")
		assertGet(t, h, "/readyz/nodes", 500, "internal server error: nodes is not ready for 1s: Forbidden\n")
		assertGet(t, health.Live(1, w.pods), "/livez?verbose", 200, "[+]pods ok\nlivez check passed\n")
	})
}

// Texts of the API server are on a page only if the program wants them there.
func TestReasonsAreWithheldUnlessWanted(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		c := health.Ready(0, w.pods, w.nodes)
		w.run()
		w.refuse(nodes)
		for _, url := range []string{"/readyz", "/readyz?verbose", "/readyz/nodes"} {
			_, body := get(t, mount(c), url)
			assert.NotContains(t, body, "app", url)
		}
		err := c.Check(nil)
		assert.EqualError(t, err, "nodes is not ready for 1s: Forbidden")
		assert.ErrorIs(t, err, invalidation.Forbidden)
		assert.ErrorIs(t, err, safestore.ErrNotReady)

		c.Reasons = true
		_, body := get(t, mount(c), "/readyz")
		assert.Regexp(t, `^\[\+]pods ok\n\[-]nodes failed: store is not ready: nodes, generation 2: generation 1 revoked at [^\n]* `+
			`User "app" cannot list resource "nodes" in API group ""[^\n]*\nreadyz check failed\n$`, body)
		_, body = get(t, mount(c), "/readyz/nodes")
		assert.Contains(t, body, `internal server error: store is not ready: nodes, generation 2`)
		assert.ErrorContains(t, c.Check(nil), `User "app"`)
	})
}

func TestGroups(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		empty := groupOf(t, "empty")
		g := groupOf(t, "all", w.pods, groupOf(t, "inner", w.nodes))
		h := mount(health.Ready(0, g))
		w.run()
		assertGet(t, h, "/readyz?verbose", 200, "[+]pods ok\n[+]nodes ok\nreadyz check passed\n")
		assertGet(t, mount(health.Ready(0, g, empty)), "/readyz", 500,
			"[+]pods ok\n[+]nodes ok\n[-]empty failed: reason withheld\nreadyz check failed\n")
		assertGet(t, mount(health.Ready(0, g, empty)), "/readyz/empty", 500, "internal server error: empty is not ready: there are no members\n")

		w.refuse(nodes)
		assertGet(t, h, "/readyz", 500, "[+]pods ok\n[-]nodes failed: reason withheld\nreadyz check failed\n")
		assertGet(t, h, "/readyz?verbose&exclude=all", 200,
			"[+]pods excluded with all: ok\n[+]nodes excluded with all: ok\nreadyz check passed\n")

		g.Close()
		assertGet(t, h, "/readyz", 500, "[-]all failed: reason withheld\nreadyz check failed\n")
		assertGet(t, h, "/readyz/all", 500, "internal server error: all is not ready: Closed\n")
	})
}

// A group whose members are ready and that a blocking hook holds back is not ready
// for the check either, and it says why.
func TestGroupThatIsHeldBack(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		g := groupOf(t, "all", w.pods)
		defer g.OnRevokeSync(time.Minute, func(ctx context.Context, _ *invalidation.Revocation) { <-ctx.Done() })()
		w.run()
		w.pods.Revoke(w.pods.Token(), errors.New("wanted"))
		_, err := w.pods.WaitReady(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		h := mount(health.Ready(time.Second, g))
		assertGet(t, h, "/readyz", 500, "[+]pods ok\n[-]all failed: reason withheld\nreadyz check failed\n")
		assertGet(t, h, "/readyz/all", 500, "internal server error: all is not ready for 2s: Requested\n")
		assert.Error(t, g.NotReady())
		assertGet(t, mount(health.Ready(5*time.Second, g)), "/readyz", 200, "ok")
		time.Sleep(time.Minute)
		assertGet(t, h, "/readyz", 200, "ok")
		assert.NoError(t, g.NotReady())
	})
}

func TestMistakesPanic(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		var none *safestore.Group
		for what, f := range map[string]func(){
			"health: no stores":                 func() { health.Ready(0) },
			"health: a store is nil":            func() { health.Live(1, w.pods, nil) },
			"health: grace is negative: -1ns":   func() { health.Ready(-1, w.pods) },
			"health: limit is not positive: 0s": func() { health.Live(0, w.pods) },
			"health: two stores or groups are called pods: give one a name of its own, by Options.Name or NewGroup": func() {
				health.Ready(0, w.pods, w.pods)
			},
		} {
			assert.PanicsWithValue(t, what, f)
		}
		assert.PanicsWithValue(t, "health: a store is nil", func() { health.Ready(0, none) })
	})
}
