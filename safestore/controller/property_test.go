package controller_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/token"
)

// seed replays one run: go test ./safestore/controller -run TestAnyKeyIsWorkedOn -seed=N
var seed = flag.Uint64("seed", 0, "run the random tests of package controller with this seed only")

// healing is how long it takes at most after the last fault until all is ready and
// all work is done.
const healing = 30 * time.Minute

// Whatever happens, the last work on each key sees what both stores hold in the end;
// and what the history does not allow never happens.
func TestAnyKeyIsWorkedOnAfterItsLastChange(t *testing.T) {
	seeds := make([]uint64, 60)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if *seed != 0 {
		seeds = []uint64{*seed}
	}
	for _, seed := range seeds {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				(&world{bench: b, rnd: rand.New(rand.NewPCG(seed, 0)), seen: map[string]string{}}).run(seed)
			})
		}) {
			t.Logf("replay with: go test ./safestore/controller -run TestAnyKeyIsWorkedOn -seed=%d", seed)
			return
		}
	}
}

// world is a random run. Keys are names: of a ConfigMap, and of the Secret that is
// named like it.
type world struct {
	*bench
	rnd *rand.Rand // the test's own

	mu   sync.Mutex
	work *rand.Rand        // that of the workers
	seen map[string]string // by work that is done, and was not cut
}

func (w *world) run(seed uint64) {
	w.work = rand.New(rand.NewPCG(seed, 1))
	keysOf := func(c safestore.Change[*corev1.Secret]) []types.NamespacedName { return []types.NamespacedName{c.Key} }
	c := w.new(controller.Options{Workers: 1 + w.rnd.IntN(4)}, w.reconcile,
		controller.For(w.mapStore), controller.Watches(w.secStore, keysOf))
	c.Readiness().OnRevoke(func(r *invalidation.Revocation) { w.history.ended(r.Generation) })
	w.start(c)
	for range 5 + w.rnd.IntN(30) {
		w.step()
		time.Sleep(time.Duration(w.rnd.Int64N(int64(20 * time.Second))))
	}
	w.Heal()
	w.step()
	time.Sleep(healing)
	synctest.Wait()

	assert.NoError(w.t, c.Readiness().NotReady())
	w.mu.Lock()
	defer w.mu.Unlock()
	maps, err := w.mapStore.Snapshot()
	assert.NoError(w.t, err)
	secrets, err := w.secStore.Snapshot()
	assert.NoError(w.t, err)
	assert.Equal(w.t, w.maps.Len(), maps.Len())
	for name, seen := range w.seen {
		assert.Equal(w.t, shown(maps, secrets, named(name)), seen, "%s: %v", name, w.history.take())
	}
	for key := range maps.All() {
		assert.Contains(w.t, w.seen, key.Name)
	}
	for key := range secrets.All() {
		assert.Contains(w.t, w.seen, key.Name)
	}
	status := c.Status()
	w.t.Logf("%+v", status)
	assert.Zero(w.t, status.Queued)
	assert.Zero(w.t, status.Running)
}

// step lets something happen.
func (w *world) step() {
	name := fmt.Sprint(w.rnd.IntN(6))
	kind, store := wiretest.ConfigMaps, safestore.Readiness(w.mapStore)
	if w.rnd.IntN(2) == 0 {
		kind, store = secretsKind, w.secStore
	}
	all := wiretest.Of(kind, wiretest.All)
	switch w.rnd.IntN(9) {
	case 0, 1:
		w.set(name, fmt.Sprint(w.rnd.Int()))
	case 2:
		w.secrets.Set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	case 3:
		if _, exists := w.maps.Objects()[named(name)]; exists {
			w.maps.Delete("default", name)
		}
	case 4:
		switch store := store.(type) {
		case *safestore.Store[*corev1.ConfigMap]:
			store.Revoke(store.Token(), nil)
		case *safestore.Store[*corev1.Secret]:
			store.Revoke(store.Token(), nil)
		}
	case 5:
		time.AfterFunc(time.Duration(w.rnd.Int64N(int64(5*time.Minute))), w.Break(all, wiretest.Answer(forbidden())))
		w.End()
	case 6:
		w.Skip(1)
		w.Compact()
		w.Cut() // what is resumed is answered with 410, unless it was at the newest
	case 7:
		w.Stall()
		time.AfterFunc(time.Duration(w.rnd.Int64N(int64(5*time.Minute))), w.Resume)
	case 8:
		w.Down()
		time.AfterFunc(time.Duration(w.rnd.Int64N(int64(3*time.Minute))), w.Up)
	}
}

// reconcile acts a few times, with pauses, and ends in all ways there are.
func (w *world) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	maps, err := w.mapStore.In(req.Snapshot)
	if err != nil {
		return controller.Result{}, err
	}
	secrets, err := w.secStore.In(req.Snapshot)
	if err != nil {
		return controller.Result{}, err
	}
	for range w.random(4) {
		_ = w.history.acts(ctx, req) // some go on all the same
		select {
		case <-time.After(time.Duration(w.random(int(3 * time.Second)))):
		case <-ctx.Done():
			if w.random(2) == 0 {
				return controller.Result{}, context.Cause(ctx)
			}
		}
	}
	if w.random(4) == 0 {
		return controller.Result{}, errTest
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil {
		w.seen[req.Key.Name] = shown(maps, secrets, req.Key)
	}
	if w.work.IntN(4) == 0 && req.Snapshot.Token().State() == token.Ready {
		return controller.Result{RequeueAfter: time.Duration(w.work.Int64N(int64(time.Minute)))}, nil
	}
	return controller.Result{}, nil
}

func (w *world) random(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.work.IntN(n)
}

// shown is what the stores hold under a key.
func shown(maps *safestore.Snapshot[*corev1.ConfigMap], secrets *safestore.Snapshot[*corev1.Secret], key types.NamespacedName) string {
	text := ""
	if m, err := maps.Get(key); !apierrors.IsNotFound(err) {
		text += m.ResourceVersion
	}
	if s, err := secrets.Get(key); !apierrors.IsNotFound(err) {
		text += "/" + s.ResourceVersion
	}
	return text
}
