package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// in selects what is labelled so.
var in = watcher.WithLabelSelector(labels.SelectorFromSet(labels.Set{"in": "yes"}))

// label sets the label that in selects by, creating the ConfigMap if need be.
func (e *env) label(t *testing.T, namespace, name, value string) *corev1.ConfigMap {
	t.Helper()
	maps := e.admin.CoreV1().ConfigMaps(namespace)
	patch := fmt.Sprintf(`{"metadata":{"labels":{"in":%q}}}`, value)
	m, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		m = configMap(namespace, name, "0")
		m.Labels = map[string]string{"in": value}
		m, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
	}
	require.NoError(t, err)
	return m
}

// selected returns what the server holds of the ConfigMaps that in selects.
func (e *env) selected(t *testing.T, namespace string) subject.Contents {
	t.Helper()
	var opts metav1.ListOptions
	in(&opts)
	list, err := e.admin.CoreV1().ConfigMaps(namespace).List(t.Context(), opts)
	require.NoError(t, err)
	contents := subject.Contents{}
	for i := range list.Items {
		contents.Add(&list.Items[i])
	}
	return contents
}

// A server says of an object that stops matching that it is deleted, in the state
// that still matched and at the version of the change. The store has what matches,
// whether it watched or not when that changed.
func TestObjectsComeAndGoWithTheirLabels(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.label(t, namespace, "a", "yes")
	e.label(t, namespace, "b", "yes")
	e.label(t, namespace, "c", "no")
	o := subject.Options{Store: fast(), Namespace: namespace, Modify: []func(*metav1.ListOptions){in}}
	p, config := throughProxy(t, e.API)
	subjects := subject.All(t, config, o)
	o.Paged = true
	subjects = append(subjects, subject.Typed(t, config, o))
	ready := startAll(t, subjects)
	expect := func(names ...string) {
		t.Helper()
		want := e.selected(t, namespace)
		require.Equal(t, names, want.Names())
		for _, s := range subjects {
			s.AwaitContents(t, want)
		}
	}
	expect("a", "b")

	var opts metav1.ListOptions
	in(&opts)
	raw, err := e.admin.CoreV1().ConfigMaps(namespace).Watch(t.Context(), opts)
	require.NoError(t, err)
	defer raw.Stop()
	for range 2 {
		<-raw.ResultChan() // what there is
	}
	heard := func(want watch.EventType, m *corev1.ConfigMap, label string) {
		t.Helper()
		select {
		case event := <-raw.ResultChan():
			require.Equal(t, want, event.Type)
			obj := event.Object.(*corev1.ConfigMap)
			assert.Equal(t, m.Name, obj.Name)
			assert.Equal(t, m.ResourceVersion, obj.ResourceVersion)
			assert.Equal(t, label, obj.Labels["in"])
		case <-time.After(patience):
			require.Fail(t, "no event")
		}
	}

	heard(watch.Deleted, e.label(t, namespace, "a", "no"), "yes")
	expect("b")
	heard(watch.Added, e.label(t, namespace, "a", "yes"), "yes")
	expect("a", "b")
	e.label(t, namespace, "c", "neither")
	heard(watch.Added, e.label(t, namespace, "d", "yes"), "yes")
	expect("a", "b", "d")
	e.delete(t, namespace, "c")
	e.delete(t, namespace, "d")
	expect("a", "b")

	// The same while nobody watches.
	var releases []func()
	for _, s := range subjects {
		s.AwaitRequests(t, "an open watch", isWatching)
		releases = append(releases, s.Gate.Hold(func(requests.Request) bool { return true }))
	}
	require.NotZero(t, p.Cut())
	e.label(t, namespace, "a", "no")
	e.label(t, namespace, "b", "no")
	e.label(t, namespace, "b", "yes") // gone and there again
	e.label(t, namespace, "c", "yes")
	e.label(t, namespace, "e", "yes")
	e.label(t, namespace, "e", "no") // there and gone again
	for _, release := range releases {
		release()
	}
	expect("b", "c")
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		assert.Same(t, ready[s], s.Token(), "all of it is ordinary life")
		assert.Empty(t, requests.Unprompted(s.Requests.All()))
	})
}

// By fields as well.
func TestObjectsComeAndGoWithTheirFields(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	pods := e.admin.CoreV1().Pods(namespace)
	running := watcher.WithFieldSelector(fields.OneTermEqualSelector("status.phase", string(corev1.PodRunning)))
	phase := func(name string, phase corev1.PodPhase) {
		t.Helper()
		patch := fmt.Sprintf(`{"status":{"phase":%q}}`, phase)
		_, err := pods.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	for _, name := range []string{"a", "b"} {
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	phase("a", corev1.PodRunning)
	o := subject.Options{Store: fast(), Namespace: namespace, Modify: []func(*metav1.ListOptions){running}}
	s := subject.Dynamic(t, e.Config(), corev1.SchemeGroupVersion.WithResource("pods"), o).Start(t)
	ready := s.AwaitReady(t)
	expect := func(names ...string) {
		t.Helper()
		var opts metav1.ListOptions
		running(&opts)
		list, err := pods.List(t.Context(), opts)
		require.NoError(t, err)
		want := subject.Contents{}
		for i := range list.Items {
			want.Add(&list.Items[i])
		}
		require.Equal(t, names, want.Names())
		s.AwaitContents(t, want)
	}
	expect("a")
	phase("b", corev1.PodRunning)
	expect("a", "b")
	phase("a", corev1.PodSucceeded)
	expect("b")
	_, err := s.GetAny(t.Context(), types.NamespacedName{Namespace: namespace, Name: "a"})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.Same(t, ready, s.Token())
}

// A server selects by some fields only, and says so.
func TestFieldThatCannotBeSelectedBy(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	bad := watcher.WithFieldSelector(fields.OneTermEqualSelector("data.key", "x"))
	o := subject.Options{Store: fast(), Namespace: namespace, Modify: []func(*metav1.ListOptions){bad}}
	withEach(t, subject.All(t, e.Config(), o), func(t *testing.T, s *subject.Subject) {
		s.Start(t)
		eventually(t, "an answer", func() bool { return s.Status().Watch.LastError != nil })
		_, err := s.View()
		require.ErrorIs(t, err, safestore.ErrNotReady)
		assert.ErrorContains(t, err, `"data.key" is not a known field selector`)
		var status apierrors.APIStatus
		require.True(t, errors.As(err, &status))
		assert.EqualValues(t, 400, status.Status().Code)
	})
}

// Selectors of nothing have no text, and are not taken for those of everything.
// What stands in for them is watched and proven like any other.
func TestNothingIsSelected(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.seed(t, namespace)
	for name, nothing := range map[string]func(*metav1.ListOptions){
		"labels": watcher.WithLabelSelector(labels.Nothing()),
		"fields": watcher.WithFieldSelector(fields.Nothing()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := subject.Options{Store: fast(), Namespace: namespace, Modify: []func(*metav1.ListOptions){nothing}}
			o.Store.MaxStaleness = 15 * time.Second
			s := subject.Typed(t, e.Config(), o).Start(t)
			ready := s.AwaitReady(t)
			e.create(t, namespace, name, "0")
			proven := s.Status().Proven
			eventually(t, "another proof", func() bool { return s.Status().Proven.After(proven) })
			s.AwaitContents(t, subject.Contents{})
			assert.Same(t, ready, s.Token())
		})
	}
}

// countedSource counts its lists.
type countedSource struct {
	watcher.Source
	lists atomic.Int64
}

func (s *countedSource) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	s.lists.Add(1)
	return s.Source.ListWithContext(ctx, opts)
}

// What audits list is selected as the set is, or the two differ.
func TestAuditsSelectTheSame(t *testing.T) {
	t.Parallel()
	e := share(t)
	namespace := e.namespace(t)
	e.label(t, namespace, "a", "yes")
	e.label(t, namespace, "b", "no")
	client := e.metadata.Resource(subject.ConfigMaps).Namespace(namespace)
	start := func(audits watcher.Source) (*subject.Subject, *countedSource) {
		counted := &countedSource{Source: audits}
		o := subject.Options{Store: fast(), Namespace: namespace, Modify: []func(*metav1.ListOptions){in}}
		o.Store.Watch.AuditInterval = time.Second
		o.Store.Watch.AuditSource = counted
		return subject.Typed(t, e.Config(), o).Start(t), counted
	}

	s, audits := start(watcher.ListWatch(client, in))
	ready := s.AwaitReady(t)
	for i := range 3 {
		e.label(t, namespace, "a", []string{"no", "yes"}[i%2])
		s.AwaitContents(t, e.selected(t, namespace))
		n := audits.lists.Load()
		eventually(t, "another audit", func() bool { return audits.lists.Load() > n })
	}
	assert.Same(t, ready, s.Token())

	s, _ = start(watcher.ListWatch(client))
	assert.Equal(t, invalidation.Diverged, s.AwaitRevoked(t, s.AwaitReady(t)).Reason)
}
