package safestore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// fleet is many stores over one client with client-go's default limit, five requests a
// second, as in a program with many kinds.
type fleet struct {
	*wiretest.Server
	client  kubernetes.Interface
	stores  []*safestore.Store[*corev1.ConfigMap]
	mu      sync.Mutex
	revoked map[invalidation.Reason]int
}

func onFleet(t *testing.T, n int, opts safestore.Options, prepare func(*fleet), test func(*testing.T, *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{Server: wiretest.New(t), revoked: map[invalidation.Reason]int{}}
		f.Resource(wiretest.ConfigMaps).Set(configMap("a", "1"))
		prepare(f)
		config := f.Config()
		config.QPS = 0 // the default
		f.client = kubernetes.NewForConfigOrDie(config)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		var running sync.WaitGroup
		for i := range n {
			opts.Name = fmt.Sprintf("store %d", i)
			s, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(f.client.CoreV1().ConfigMaps("")), opts)
			require.NoError(t, err)
			s.OnRevoke(f.hear)
			f.stores = append(f.stores, s)
			running.Go(func() { _ = s.Run(ctx) })
		}
		test(t, f)
		cancel()
		running.Wait()
	})
}

func (f *fleet) hear(r *invalidation.Revocation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked[r.Reason]++
}

// ready returns how many stores can be read, and why one cannot.
func (f *fleet) ready() (n int, why error) {
	for _, s := range f.stores {
		if err := s.NotReady(); err != nil {
			why = err
		} else {
			n++
		}
	}
	return n, why
}

// ownRequest returns how long a request of the program's own takes on the same client.
func (f *fleet) ownRequest(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	_, err := f.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return time.Since(start)
}

func healthy(*fleet) {}

// C61: above what the client's limit allows some stores keep their bound and the others
// say why they do not. None is taken for stuck because its requests wait in the client, and
// the program's own requests pass.
func TestC61FleetDegradesAndDoesNotCollapse(t *testing.T) {
	opts := safestore.Options{MaxStaleness: 30 * time.Second}
	onFleet(t, 223, opts, healthy, func(t *testing.T, f *fleet) {
		after(10 * time.Minute)
		for range 60 {
			after(5 * time.Second)
			ready, why := f.ready()
			assert.Greater(t, ready, 50, "at %v", time.Now())
			assert.ErrorContains(t, why, "the client's own rate limiter has no room")
		}
		assert.Less(t, f.ownRequest(t), 10*time.Second)
		assert.Zero(t, f.revoked[invalidation.Stuck])
	})
}

// C61: below it all keep their bound.
func TestC61FleetWithinTheLimit(t *testing.T) {
	opts := safestore.Options{MaxStaleness: 30 * time.Second}
	onFleet(t, 60, opts, healthy, func(t *testing.T, f *fleet) {
		after(30 * time.Second)
		for range 600 {
			after(time.Second)
			_, why := f.ready()
			require.NoError(t, why)
		}
		assert.Less(t, f.ownRequest(t), 5*time.Second)
	})
}

// C61: first lists wait for their turn in the client, and are not given up meanwhile.
func TestC61FirstListsTakeTurns(t *testing.T) {
	const n = 500
	noWatchList := func(f *fleet) { f.Break(wiretest.Initial, wiretest.Answer(wiretest.NoWatchList())) }
	onFleet(t, n, safestore.Options{}, noWatchList, func(t *testing.T, f *fleet) {
		after(5 * time.Minute) // a refused WatchList, a list and a watch for each, five a second
		ready, why := f.ready()
		assert.Equal(t, n, ready, "%v", why)
		assert.Less(t, len(f.Requests(wiretest.Lists)), 2*n, "hardly any is asked for twice")
	})
}
