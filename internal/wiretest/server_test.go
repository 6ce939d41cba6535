package wiretest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// inBubble runs a test of a server with the given ConfigMaps.
func inBubble(t *testing.T, names []string, test func(*testing.T, *wiretest.Server, *wiretest.Collection, typedcorev1.ConfigMapInterface)) {
	synctest.Test(t, func(t *testing.T) {
		srv := wiretest.New(t)
		maps := srv.Resource(wiretest.ConfigMaps)
		for _, name := range names {
			maps.Set(configMap(name))
		}
		test(t, srv, maps, kubernetes.NewForConfigOrDie(srv.Config()).CoreV1().ConfigMaps(""))
	})
}

// next returns the next event, which must be there when everything is quiet.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		require.True(t, ok, "the watch is over")
		return e
	case <-time.After(time.Hour):
		require.Fail(t, "no event")
		return watch.Event{}
	}
}

// quiet says that the watch has nothing to say, and is open.
func quiet(t *testing.T, w watch.Interface) {
	t.Helper()
	synctest.Wait()
	select {
	case e, ok := <-w.ResultChan():
		assert.Fail(t, "not quiet", "%v %v", e, ok)
	default:
	}
}

func describe(e watch.Event) string {
	if status, ok := e.Object.(*metav1.Status); ok {
		return fmt.Sprint(e.Type, " ", status.Code, " ", status.Reason)
	}
	m := e.Object.(metav1.Object)
	return fmt.Sprint(e.Type, " ", m.GetName(), " ", m.GetResourceVersion())
}

func TestPages(t *testing.T) {
	inBubble(t, []string{"a", "b", "c"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		first, err := client.List(t.Context(), metav1.ListOptions{Limit: 2})
		require.NoError(t, err)
		assert.Len(t, first.Items, 2)
		assert.Equal(t, "1003", first.ResourceVersion)
		assert.EqualValues(t, 1, *first.RemainingItemCount)

		maps.Delete("default", "c")
		rest, err := client.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
		require.NoError(t, err)
		assert.Len(t, rest.Items, 1, "of the version of the first page")
		assert.Equal(t, "1003", rest.ResourceVersion)
		assert.Empty(t, rest.Continue)

		srv.Compact()
		_, err = client.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
		assert.True(t, apierrors.IsResourceExpired(err), err)
		_, err = client.List(t.Context(), metav1.ListOptions{ResourceVersion: "2000"})
		assert.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), err)
	})
}

func TestWatch(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		seconds := int64(100)
		w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1000", AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
		require.NoError(t, err)
		start := time.Now()
		assert.Equal(t, "ADDED a 1001", describe(next(t, w)))
		maps.Set(configMap("a"))
		maps.Delete("default", "a")
		assert.Equal(t, "MODIFIED a 1002", describe(next(t, w)))
		assert.Equal(t, "DELETED a 1003", describe(next(t, w)))
		assert.Zero(t, time.Since(start))
		srv.Skip(7)
		assert.Equal(t, "BOOKMARK  1010", describe(next(t, w)))
		assert.Equal(t, time.Minute, time.Since(start))
		assert.Equal(t, "BOOKMARK  1010", describe(next(t, w)))
		assert.Equal(t, 98*time.Second, time.Since(start))
		_, open := <-w.ResultChan()
		assert.False(t, open)
		assert.Equal(t, 100*time.Second, time.Since(start))
	})
}

func TestWatchFromExpiredAndFutureVersions(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		srv.Compact()
		w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1001"})
		require.NoError(t, err)
		assert.Equal(t, "ERROR 410 Expired", describe(next(t, w)))

		w, err = client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1003", AllowWatchBookmarks: true})
		require.NoError(t, err)
		defer w.Stop()
		time.Sleep(10*time.Minute + time.Second)
		maps.Set(configMap("c"))
		quiet(t, w)
		maps.Set(configMap("d"))
		assert.Equal(t, "ADDED d 1004", describe(next(t, w)))
	})
}

func TestWatchList(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		yes := true
		opts := metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}
		w, err := client.Watch(t.Context(), opts)
		require.NoError(t, err)
		assert.Equal(t, "ADDED a 1001", describe(next(t, w)))
		assert.Equal(t, "ADDED b 1002", describe(next(t, w)))
		marker := next(t, w)
		assert.Equal(t, "BOOKMARK  1002", describe(marker))
		assert.Equal(t, "true", marker.Object.(metav1.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey])
		w.Stop()
		synctest.Wait()
		assert.Zero(t, srv.Streams())
		requests := srv.Requests(wiretest.Initial)
		require.Len(t, requests, 1)
		assert.True(t, requests[0].Dropped)
	})
}

func TestAnswerAndHeal(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		srv.Break(wiretest.First(1, wiretest.Lists), wiretest.Answer(apierrors.NewUnauthorized("who?")))
		_, err := client.List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsUnauthorized(err), err)
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.NoError(t, err)

		heal := srv.Break(wiretest.All, wiretest.Hang)
		time.AfterFunc(time.Minute, heal)
		start := time.Now()
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(start))

		srv.Resource(wiretest.ConfigMaps)
		srv.Remove(wiretest.ConfigMaps)
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsNotFound(err), err)
	})
}

func TestOutages(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		from := metav1.ListOptions{ResourceVersion: "1001"}
		w, err := client.Watch(t.Context(), from)
		require.NoError(t, err)
		srv.Stall()
		maps.Set(configMap("b"))
		quiet(t, w)
		srv.Resume()
		assert.Equal(t, "ADDED b 1002", describe(next(t, w)))

		srv.BlackHole(true)
		maps.Set(configMap("c"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = client.List(ctx, metav1.ListOptions{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		quiet(t, w)
		srv.BlackHole(false)
		assert.Equal(t, "ADDED c 1003", describe(next(t, w)))

		srv.Down()
		_, open := <-w.ResultChan()
		assert.False(t, open, "an end of file is the end of a watch to client-go")
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.True(t, utilnet.IsConnectionRefused(err), err)
		srv.Up()
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.NoError(t, err)
	})
}

func TestStreamFaults(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		srv.Break(wiretest.First(1, wiretest.Watches), wiretest.Script(true, []byte(`{"type":"ADDED","obj`)))
		w, err := client.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		_, open := <-w.ResultChan()
		assert.False(t, open)

		srv.Break(wiretest.First(1, wiretest.Watches), wiretest.Script(false, []byte("garbage\n")))
		w, err = client.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, "ERROR 500 InternalError", describe(next(t, w)))

		srv.Break(wiretest.First(1, wiretest.Watches), wiretest.Forget(1, watch.Added))
		w, err = client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1001"})
		require.NoError(t, err)
		maps.Set(configMap("b"))
		synctest.Wait()
		maps.Set(configMap("c"))
		assert.Equal(t, "ADDED c 1003", describe(next(t, w)))
		srv.Send(wiretest.ErrorEvent(apierrors.NewTooManyRequests("slow", 3)))
		assert.Equal(t, "ERROR 429 TooManyRequests", describe(next(t, w)))
		srv.End()
		_, open = <-w.ResultChan()
		assert.False(t, open)
	})
}

func TestRewindAndLag(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		restore := srv.Backup()
		maps.Set(configMap("b"))
		heal := srv.Break(wiretest.All, wiretest.Lag(1001))
		list, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		require.NoError(t, err)
		assert.Equal(t, "1001", list.ResourceVersion)
		list, err = client.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, "1002", list.ResourceVersion, "a consistent read")
		w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1001"})
		require.NoError(t, err)
		quiet(t, w)
		heal()
		assert.Equal(t, "ADDED b 1002", describe(next(t, w)))
		w.Stop()

		restore()
		list, err = client.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, "1001", list.ResourceVersion)
		assert.Len(t, list.Items, 1)
	})
}

func TestVersionStyles(t *testing.T) {
	for style, want := range map[wiretest.VersionStyle]string{wiretest.Opaque: "etag-1001", wiretest.Absent: ""} {
		synctest.Test(t, func(t *testing.T) {
			srv := wiretest.New(t)
			srv.Style(style)
			srv.Resource(wiretest.ConfigMaps).Set(configMap("a"))
			list, err := kubernetes.NewForConfigOrDie(srv.Config()).CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			assert.Equal(t, want, list.ResourceVersion)
			assert.Equal(t, want, list.Items[0].ResourceVersion)
		})
	}
}

func TestEmptyBody(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *wiretest.Server, maps *wiretest.Collection, client typedcorev1.ConfigMapInterface) {
		srv.Break(wiretest.Watches, wiretest.Respond(http.StatusOK, nil, ""))
		w, err := client.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		_, open := <-w.ResultChan()
		assert.False(t, open)
	})
}
