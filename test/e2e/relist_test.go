package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

const (
	bigSet  = 10_000
	changed = 100 // objects deleted and created while the store is cut off
)

// C34: a large set is listed again while readers read. Each of them sees all of
// the old set under the old token, all of the new one under the new token, or an
// error in between; and no read waits for the list.
func TestARelistIsAllOrNothing(t *testing.T) {
	t.Parallel()
	e := own(t)
	namespace := e.namespace(t)
	begun := time.Now()
	e.fillFast(t, namespace, bigSet, func(i int) *corev1.ConfigMap {
		if i < changed {
			return configMap(namespace, fmt.Sprintf("old-%d", i), "old")
		}
		return configMap(namespace, fmt.Sprintf("kept-%d", i), "0")
	})
	t.Logf("created after %v", time.Since(begun))
	p, config := throughProxy(t, e.API)
	o := subject.Options{Store: fast(), Namespace: namespace}
	streamed := subject.Typed(t, config, o)
	o.Paged = true
	paged := subject.Typed(t, config, o)
	subjects := []*subject.Subject{streamed, paged}
	ready := startAll(t, subjects)
	t.Logf("ready after %v", time.Since(begun))

	p.Refuse()
	require.NoError(t, inParallel(t.Context(), changed, func(ctx context.Context, i int) error {
		return e.admin.CoreV1().ConfigMaps(namespace).Delete(ctx, fmt.Sprintf("old-%d", i), metav1.DeleteOptions{})
	}))
	require.NoError(t, inParallel(t.Context(), changed, func(ctx context.Context, i int) error {
		_, err := e.admin.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(namespace, fmt.Sprintf("new-%d", i), "new"), metav1.CreateOptions{})
		return err
	}))
	restart(t, e.API)

	t.Logf("restarted after %v", time.Since(begun))
	readers := map[*subject.Subject]*pollers{}
	for _, s := range subjects {
		readers[s] = poll(t.Context(), s)
	}
	p.Accept()
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		assert.Equal(t, invalidation.Relist, s.AwaitRevoked(t, ready[s]).Reason)
		s.AwaitReady(t)
		seen := readers[s].stop()
		t.Logf("%+v", seen)
		assert.Empty(t, seen.wrong)
		assert.NotZero(t, seen.old)
		assert.NotZero(t, seen.notReady)
		assert.NotZero(t, seen.current)
		assert.Equal(t, ready[s].Generation()+1, s.Token().Generation())
		assert.True(t, mustView(t, s).Contents().Equal(e.configMaps(t, namespace)))
	})
	pages := 0
	for _, r := range paged.Requests.All() {
		if r.Kind == requests.List && r.Complete {
			pages++
		}
	}
	assert.Equal(t, 2*bigSet/500, pages)
}

func mustView(t *testing.T, s *subject.Subject) *subject.View {
	t.Helper()
	view, err := s.View()
	require.NoError(t, err)
	return view
}

// seen is what the readers of a store saw.
type seen struct {
	old, current, notReady int
	wrong                  []string
}

// pollers read in a loop, until they are stopped and each has seen the new set.
type pollers struct {
	end     atomic.Bool
	readers sync.WaitGroup

	mu   sync.Mutex
	seen seen
}

// poll starts readers that wait for the store, and one that does not.
func poll(ctx context.Context, s *subject.Subject) *pollers {
	p := &pollers{}
	for range 3 {
		p.readers.Go(func() {
			for last := ""; last != "new" || !p.end.Load(); {
				list, err := s.ListAny(ctx)
				if err != nil {
					p.judge(nil, err)
					return
				}
				contents := subject.Contents{}
				for _, obj := range list {
					contents.Add(obj)
				}
				last = p.judge(contents, nil)
			}
		})
	}
	p.readers.Go(func() {
		pace := time.NewTicker(time.Millisecond) // leaves the processors to the relist
		defer pace.Stop()
		for last := ""; last != "new" || !p.end.Load(); <-pace.C {
			view, err := s.View()
			if err != nil {
				last = p.judge(nil, err)
				continue
			}
			last = p.judge(view.Contents(), nil)
		}
	})
	return p
}

func (p *pollers) stop() seen {
	p.end.Store(true)
	p.readers.Wait()
	return p.seen
}

// judge says which set was read.
func (p *pollers) judge(contents subject.Contents, err error) (set string) {
	counts := map[string]int{}
	for _, state := range contents {
		counts[state.Value]++
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, safestore.ErrNotReady) && errors.Is(err, invalidation.Relist):
		p.seen.notReady++
		return "none"
	case err == nil && counts["0"] == bigSet-changed && counts["old"] == changed && counts["new"] == 0:
		p.seen.old++
		return "old"
	case err == nil && counts["0"] == bigSet-changed && counts["old"] == 0 && counts["new"] == changed:
		p.seen.current++
		return "new"
	default:
		p.seen.wrong = append(p.seen.wrong, fmt.Sprint(counts, err))
		return "wrong"
	}
}
