package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// waiter is the part of a store that waits for what a program knows.
type waiter interface {
	Sync(ctx context.Context) error
	WaitFor(ctx context.Context, obj metav1.Object) error
	WaitForVersion(ctx context.Context, version string) error
	WaitForDeletion(ctx context.Context, obj metav1.Object) error
}

func waiting(s *subject.Subject) waiter { return s.Store.(waiter) }

// A program reads what it has just written, while somebody else writes the same
// objects (C49).
func TestReadYourOwnWrites(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	c := e.count(t, namespace) // the foreign writer
	s := subject.Typed(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace}).Start(t)
	ready := s.AwaitReady(t)
	const writes = 200
	var waited, longest time.Duration
	for i := range writes {
		name := fmt.Sprintf("own-%d", i%5)
		if i%10 == 9 {
			name = c.key.Name // his too
		}
		obj := configMap(namespace, name, strconv.Itoa(1_000_000+i))
		written, err := e.admin.CoreV1().ConfigMaps(namespace).Update(t.Context(), obj, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			written, err = e.admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), obj, metav1.CreateOptions{})
		}
		require.NoError(t, err)
		begun := time.Now()
		switch i % 3 {
		case 0:
			err = waiting(s).WaitFor(t.Context(), written)
		case 1:
			err = waiting(s).WaitForVersion(t.Context(), written.ResourceVersion)
		default:
			err = waiting(s).Sync(t.Context())
		}
		require.NoError(t, err)
		took := time.Since(begun)
		waited, longest = waited+took, max(longest, took)
		read, err := s.GetAny(t.Context(), subjectKey(obj))
		require.NoError(t, err)
		got, wrote := mustNumber(t, read.GetResourceVersion()), mustNumber(t, written.ResourceVersion)
		require.GreaterOrEqual(t, got, wrote)
		if name != c.key.Name {
			assert.Equal(t, written.ResourceVersion, read.GetResourceVersion())
			assert.Equal(t, obj.Annotations, read.GetAnnotations())
		}
	}
	assert.Same(t, ready, s.Token())
	t.Logf("%d writes: waited %v on average, %v at most", writes, waited/writes, longest)
}

func subjectKey(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func mustNumber(t *testing.T, version string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(version, 10, 64)
	require.NoError(t, err)
	return n
}

// A deletion is waited for until that object is gone, and not longer if another
// one takes its name (C49).
func TestWaitForDeletion(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	s := subject.Typed(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace}).Start(t)
	s.AwaitReady(t)
	for i := range 20 {
		old := e.create(t, namespace, "a", "old")
		require.NoError(t, waiting(s).WaitFor(t.Context(), old))
		soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, waiting(s).WaitForDeletion(soon, old), context.DeadlineExceeded)
		cancel()
		e.delete(t, namespace, "a")
		if i%2 == 0 {
			require.NoError(t, waiting(s).WaitForDeletion(t.Context(), old))
			_, err := s.GetAny(t.Context(), subjectKey(old))
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			continue
		}
		recreated := e.create(t, namespace, "a", "new")
		require.NoError(t, waiting(s).WaitForDeletion(t.Context(), old))
		read, err := s.GetAny(t.Context(), subjectKey(old))
		require.True(t, apierrors.IsNotFound(err) || read.GetUID() == recreated.UID, "%v", err)
		require.NoError(t, waiting(s).WaitFor(t.Context(), recreated))
		e.delete(t, namespace, "a")
		require.NoError(t, waiting(s).WaitForDeletion(t.Context(), recreated))
	}
}

// Callers of Sync that call at the same time share what is asked of the server.
func TestSyncIsShared(t *testing.T) {
	t.Parallel()
	e := share(t)
	quiet, busy := e.namespace(t), e.namespace(t)
	e.create(t, quiet, "a", "0")
	c := e.count(t, busy)
	for name, namespace := range map[string]string{"quiet": quiet, "busy": busy} {
		s := subject.Typed(t, e.Config(), subject.Options{Store: fast(), Namespace: namespace}).Start(t)
		s.AwaitReady(t)
		for range 3 {
			before := requests.Count(s.Requests.All(), requests.Probe)
			begun := time.Now()
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() {
					called := time.Now()
					if !assert.NoError(t, waiting(s).Sync(t.Context())) || namespace != busy {
						return
					}
					view, err := s.View()
					if !assert.NoError(t, err) {
						return
					}
					value, err := c.value(view)
					assert.NoError(t, err)
					assert.GreaterOrEqual(t, value, c.at(called))
				})
			}
			callers.Wait()
			asked := requests.Count(s.Requests.All(), requests.Probe) - before
			t.Logf("%s: 50 callers: %d probes, %v", name, asked, round(time.Since(begun)))
			assert.LessOrEqual(t, asked, 3)
		}
	}
}

// A server that restarts is waited for by those who need to know what it holds,
// and everything else about their waits holds: what was committed before is seen,
// relist or not (C49).
func TestSyncOverARestart(t *testing.T) {
	t.Parallel()
	e := share(t)
	server, err := e.StartReplica(t.Context())
	require.NoError(t, err)
	namespace := e.namespace(t)
	e.create(t, namespace, "a", "0")
	s := subject.Typed(t, server.Config(), subject.Options{Store: fast(), Namespace: namespace}).Start(t)
	first := s.AwaitReady(t)
	s.AwaitRequests(t, "an open watch", isWatching)

	require.NoError(t, server.Kill())
	written := e.update(t, namespace, "a", "1") // by the other server
	errs := make(chan error, 3)
	go func() { errs <- waiting(s).Sync(t.Context()) }()
	go func() { errs <- waiting(s).WaitFor(t.Context(), written) }()
	go func() { errs <- waiting(s).WaitForVersion(t.Context(), written.ResourceVersion) }()
	pass(t, time.Second)
	assert.Empty(t, errs, "there is nobody to ask")
	begun := time.Now()
	require.NoError(t, server.Start(t.Context()))
	up := time.Now()
	for range 3 {
		require.NoError(t, <-errs)
	}
	t.Logf("the server needs %v to start; all know %v after", round(up.Sub(begun)), round(time.Since(up)))
	read, err := s.GetAny(t.Context(), subjectKey(written))
	require.NoError(t, err)
	assert.Equal(t, written.ResourceVersion, read.GetResourceVersion())
	assert.Greater(t, s.Token().Generation(), first.Generation(), "a 410 came in between")
}
