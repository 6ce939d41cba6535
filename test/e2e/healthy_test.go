package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/token"
)

// With a server that is well no read ever fails, whatever the bound is and however
// things change. What it costs is reported (C3). The test does not run beside
// others, which start servers and leave little of the processors to this one.
func TestAHealthyServer(t *testing.T) {
	e := share(t)
	quiet, busy, bursts, elsewhere := e.namespace(t), e.namespace(t), e.namespace(t), e.namespace(t)
	for _, namespace := range []string{quiet, bursts, elsewhere} {
		e.create(t, namespace, "a", "0")
	}
	bounds := []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second}

	// Now and then something changes elsewhere, after a while in which nothing did.
	costs := &costs{}
	tests := map[string]func(*testing.T){}
	for _, bound := range bounds {
		tests[fmt.Sprintf("%v, rarely elsewhere", bound)] = func(t *testing.T) { costs.measure(t, e, bound, quiet, nil, "rarely elsewhere") }
	}
	tests["writes"] = func(t *testing.T) {
		for i := range 10 {
			e.update(t, elsewhere, "a", fmt.Sprint(i))
			pass(t, healthyFor/10)
		}
	}
	together(t, tests)

	// Something changes all the time, somewhere.
	c := e.count(t, busy)
	tests = map[string]func(*testing.T){
		"bookmarks": func(t *testing.T) { testWhenBookmarksCome(t, e, quiet) },
		"writes": func(t *testing.T) {
			for i := range 4 {
				pass(t, healthyFor/8)
				for began := time.Now(); time.Since(began) < healthyFor/8; pass(t, 70*time.Millisecond) {
					e.update(t, bursts, "a", fmt.Sprint(i, time.Since(began)))
				}
			}
		},
	}
	for _, bound := range bounds {
		tests[fmt.Sprintf("%v, often elsewhere", bound)] = func(t *testing.T) { costs.measure(t, e, bound, quiet, nil, "often elsewhere") }
		tests[fmt.Sprintf("%v, in bursts", bound)] = func(t *testing.T) { costs.measure(t, e, bound, bursts, nil, "in bursts") }
		tests[fmt.Sprintf("%v, often", bound)] = func(t *testing.T) { costs.measure(t, e, bound, busy, c, "often") }
	}
	together(t, tests)
	slices.Sort(costs.table)
	t.Logf("requests per minute\n%8s  %-16s  %7s  %7s  %7s\n%s", "bound", "changes", "probes", "peeks", "other", strings.Join(costs.table, "\n"))
}

const healthyFor = 20 * time.Second

// costs are what stores ask of a server that is well.
type costs struct {
	mu    sync.Mutex
	table []string
}

// measure runs a store of a namespace, and checks that no read of it fails.
func (c *costs) measure(t *testing.T, e *env, bound time.Duration, namespace string, counted *counter, changes string) {
	s := subject.Typed(t, e.Config(), subject.Options{Store: within(bound), Namespace: namespace}).Start(t)
	ready := s.AwaitReady(t)
	before := s.Requests.Len()
	r := watchReads(t, s, counted, bound)
	pass(t, healthyFor)
	r.stop()
	asked := s.Requests.All()[before:]
	assert.Empty(t, r.failures(), "%v", r)
	assert.Equal(t, token.Ready, ready.State(), "%v", ready.Cause())
	perMinute := func(kinds ...requests.Kind) float64 {
		return float64(requests.Count(asked, kinds...)) * time.Minute.Seconds() / healthyFor.Seconds()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table = append(c.table, fmt.Sprintf("%8v  %-16s  %7.0f  %7.0f  %7.0f", bound, changes, perMinute(requests.Probe),
		perMinute(requests.Peek), perMinute(requests.List, requests.WatchList, requests.Watch)))
}

// testWhenBookmarksCome measures what proofs rely on: that the server sends a
// bookmark soon after a watch of three seconds is opened. The schedule of proofs
// takes it to be two seconds at most.
func testWhenBookmarksCome(t *testing.T, e *env, namespace string) {
	const tries = 30
	took, behind := make([]time.Duration, tries), make([]bool, tries)
	var watches sync.WaitGroup
	for i := range tries {
		pass(t, 110*time.Millisecond) // at different times of the server's clock
		watches.Go(func() { took[i], behind[i] = e.awaitBookmark(t, namespace) })
	}
	watches.Wait()
	slices.Sort(took)
	t.Logf("bookmarks come after %v, %v, %v (least, median, most of %d)", round(took[0]), round(took[tries/2]), round(took[tries-1]), tries)
	assert.NotZero(t, took[0], "a watch ended without one")
	assert.LessOrEqual(t, took[tries-1], 2500*time.Millisecond)
	assert.NotContains(t, behind, true, "a bookmark is not behind a list that was asked for before the watch")
}

// awaitBookmark makes the requests of a proof and returns how long the bookmark
// took, and whether it is behind the list.
func (e *env) awaitBookmark(t *testing.T, namespace string) (took time.Duration, behind bool) {
	list, err := e.admin.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
	if !assert.NoError(t, err) {
		return 0, false
	}
	seconds := int64(3)
	begun := time.Now()
	opened, err := e.admin.CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: list.Items[0].ResourceVersion, TimeoutSeconds: &seconds, AllowWatchBookmarks: true,
	})
	if !assert.NoError(t, err) {
		return 0, false
	}
	defer opened.Stop()
	for event := range opened.ResultChan() {
		if event.Type == watch.Bookmark {
			version := event.Object.(metav1.Object).GetResourceVersion()
			return time.Since(begun), mustNumber(t, version) < mustNumber(t, list.ResourceVersion)
		}
	}
	return 0, false
}
