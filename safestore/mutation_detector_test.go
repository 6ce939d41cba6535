package safestore

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// detected is a rig whose mutations are noted, as "A/a: fields".
type detected struct {
	*rig
	found []string
}

func newDetected(t *testing.T) *detected {
	d := &detected{rig: newRig(t)}
	d.mutations = newMutationDetector[*Map]("maps", d.note)
	return d
}

func (d *detected) note(e *MutationError) {
	d.found = append(d.found, fmt.Sprint(e.Key, ": ", e.Fields))
}

// look returns what a look of the detector finds.
func (d *detected) look() []string {
	d.found = nil
	d.mutations.look()
	return d.found
}

// C51: each mutation is reported once, with type, key and fields.
func TestC51MutationIsReportedOnce(t *testing.T) {
	r := newDetected(t)
	a, b := mapOf("A", "a", "1"), mapOf("A", "b", "1")
	r.publishSet(t, "1", a, b)
	require.NoError(t, r.Apply(watch.Added, mapOf("A", "c", "2")))
	assert.Empty(t, r.look())

	a.Labels = map[string]string{"app": ""}
	assert.Equal(t, []string{`A/a: [metadata.labels["app"]]`}, r.look())
	assert.Empty(t, r.look())

	a.Data = map[string]string{"k": ""}
	assert.Equal(t, []string{`A/a: [data["k"]]`}, r.look(), "only what has changed since")

	a.Name = "b"
	assert.Equal(t, []string{"A/a: [metadata.name]"}, r.look(), "by the key it was kept under")
}

// C51: an object that the store lets go is looked at once more, and then left to
// whoever still has it.
func TestC51MutationOfWhatIsLetGo(t *testing.T) {
	for name, letGo := range map[string]func(*testing.T, *detected){
		"replaced": func(t *testing.T, r *detected) {
			require.NoError(t, r.Apply(watch.Modified, mapOf("A", "a", "2")))
		},
		"deleted": func(t *testing.T, r *detected) {
			require.NoError(t, r.Apply(watch.Deleted, mapOf("A", "a", "2")))
		},
		"not listed again":      func(t *testing.T, r *detected) { r.publishSet(t, "2") },
		"listed again as newer": func(t *testing.T, r *detected) { r.publishSet(t, "2", mapOf("A", "a", "2")) },
		"dropped": func(t *testing.T, r *detected) {
			r.revokeFor(invalidation.NotAllowed, apierrors.NewForbidden(schema.GroupResource{}, "", nil))
			require.False(t, r.current.Load().complete)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDetected(t)
			a := mapOf("A", "a", "1")
			r.publishSet(t, "1", a)
			a.Labels = map[string]string{"before": ""}
			letGo(t, r)
			a.Labels["after"] = ""
			assert.Equal(t, []string{`A/a: [metadata.labels["after"] metadata.labels["before"]]`}, r.look())
			a.Labels = nil
			assert.Empty(t, r.look())
			assert.Empty(t, r.mutations.gone)
		})
	}
}

// C42, C51: an object that a relist leaves as it is keeps its copy. Another one
// would make of a mutation what is to be expected.
func TestC51MutationAcrossRelists(t *testing.T) {
	r := newDetected(t)
	a := mapOf("A", "a", "1")
	r.publishSet(t, "1", a)
	a.Labels = map[string]string{"app": ""}
	r.publishSet(t, "2", mapOf("A", "a", "1"))
	assert.Equal(t, []string{`A/a: [metadata.labels["app"]]`}, r.look())
}

// spied is an object that tells when it is copied.
type spied struct {
	Map
	copied func(*spied)
}

func (s *spied) DeepCopyObject() apiruntime.Object {
	s.copied(s)
	return &spied{Map: *s.Map.DeepCopy()}
}

// spiedStore returns a store and its writer. Each copy of an object is appended
// to copies, and is made before readers can have the object.
func spiedStore(t *testing.T, opts ...Option[*spied]) (
	w *writer[*spied], object func(name, version string) *spied, copies *[]string,
) {
	s, err := New(newScripted(), Options{}, opts...)
	require.NoError(t, err)
	s.log.Store(&klog.Logger{})
	copies = new([]string)
	copied := func(obj *spied) {
		*copies = append(*copies, obj.Name+"@"+obj.ResourceVersion)
		if got, ok := s.current.Load().set.objects.get(Key(obj)); ok {
			assert.NotSame(t, obj, got, "readers have it already")
		}
	}
	object = func(name, version string) *spied { return &spied{*mapOf("A", name, version), copied} }
	return &writer[*spied]{store: s, ordered: true}, object, copies
}

// writeSome lists and applies a few objects.
func writeSome(t *testing.T, w *writer[*spied], object func(name, version string) *spied) {
	for version := range 2 {
		w.Begin()
		require.NoError(t, w.Build(watch.Added, object("a", "1")))
		require.NoError(t, w.Build(watch.Added, object("b", "1")))
		w.Publish(fmt.Sprint(version+1), watcher.Proof{AsOf: time.Now()}, true)
	}
	require.NoError(t, w.Apply(watch.Modified, object("a", "3"), ""))
	require.NoError(t, w.Apply(watch.Deleted, object("b", "4"), ""))
}

func TestMutationDetectorCopiesBeforePublication(t *testing.T) {
	w, object, copies := spiedStore(t, WithMutationDetector[*spied](nil))
	writeSome(t, w, object)
	assert.ElementsMatch(t, []string{"a@1", "b@1", "a@3"}, *copies, "each object once")
	w.store.mutations.look()
	assert.Len(t, *copies, 3)
}

func TestMutationDetectorThatIsOffCopiesNothing(t *testing.T) {
	t.Setenv(mutationVariable, "")
	w, object, copies := spiedStore(t)
	writeSome(t, w, object)
	assert.Empty(t, *copies)
	assert.Nil(t, w.store.mutations)
}

// What a transform does to an object is not a mutation, nor is what it leaves.
func TestMutationDetectorSeesWhatIsKept(t *testing.T) {
	var found []*MutationError
	w, object, _ := spiedStore(t,
		WithTransform(func(s *spied) (*spied, error) { s.Labels = map[string]string{"kept": ""}; return s, nil }),
		WithMutationDetector[*spied](func(e *MutationError) { found = append(found, e) }))
	writeSome(t, w, object)
	w.store.mutations.look()
	assert.Empty(t, found)
}

// A type without a DeepCopyObject of its own cannot be watched, and not in
// silence.
func TestMutationDetectorOfTypeThatCannotBeCopied(t *testing.T) {
	type embedding struct{ Map }
	s, err := New(newScripted(), Options{}, WithMutationDetector[*embedding](nil))
	require.NoError(t, err)
	w := &writer[*embedding]{store: s, ordered: true}
	assert.PanicsWithValue(t,
		"safestore: mutation detector: DeepCopyObject of *safestore.embedding returns a *v1.ConfigMap",
		func() { _ = w.Apply(watch.Added, &embedding{*mapOf("A", "a", "1")}, "") })
}

// runDetected runs a store of a, which must be changed by change, with report.
func runDetected(t *testing.T, report func(*MutationError)) (change func(func(*Map)), stop func(error)) {
	s, err := New(sourceOf(mapList("1", mapOf("A", "a", "1"))), Options{}, WithMutationDetector[*Map](report))
	require.NoError(t, err)
	stop = start(t, s)
	got, err := s.Get(t.Context(), key("A", "a"))
	require.NoError(t, err)
	return func(f func(*Map)) {
		s.mutations.mu.Lock() // so that it is no data race
		defer s.mutations.mu.Unlock()
		f(got)
	}, stop
}

// The detector looks every second while the store runs, and before Run returns.
func TestMutationDetectorLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := make(chan string, 10)
		change, stop := runDetected(t, func(e *MutationError) { reports <- fmt.Sprint(e.Fields) })
		began := time.Now()
		change(func(m *Map) { m.Labels = map[string]string{"a": ""} })
		assert.Equal(t, `[metadata.labels["a"]]`, <-reports)
		assert.LessOrEqual(t, time.Since(began), mutationPeriod)

		time.Sleep(10*mutationPeriod + mutationPeriod/2)
		synctest.Wait()
		assert.Empty(t, reports)
		change(func(m *Map) { m.Labels["b"] = "" })
		stop(nil)
		require.Len(t, reports, 1, "Run has returned")
		assert.Equal(t, `[metadata.labels["b"]]`, <-reports)
	})
}

// Run waits for a report, but not for one that does not come back, as one with
// t.FailNow.
func TestReportThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := false
		change, stop := runDetected(t, func(*MutationError) {
			time.Sleep(time.Hour)
			reported = true
			runtime.Goexit()
		})
		change(func(m *Map) { m.Labels = map[string]string{"a": ""} })
		stop(nil)
		assert.True(t, reported)
	})
}

func TestMutationErrorNamesTheKindOfUntypedObjects(t *testing.T) {
	deployment := &unstructured.Unstructured{Object: map[string]any{}}
	assert.Equal(t, "unstructured.Unstructured", kindName(deployment))
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	assert.Equal(t, "apps/v1.Deployment", kindName(deployment))
	assert.Equal(t, "v1.ConfigMap", kindName(mapOf("A", "a", "1")))
	assert.Equal(t, "v1.PartialObjectMetadata", kindName(&metav1.PartialObjectMetadata{}))
}

// The writer goes on while a report takes its time: nothing is locked.
func TestWriterDoesNotWaitForReports(t *testing.T) {
	r := newDetected(t)
	a := mapOf("A", "a", "1")
	r.publishSet(t, "1", a)
	r.mutations.report = func(*MutationError) {
		require.NoError(t, r.Apply(watch.Modified, mapOf("A", "a", "2")))
		r.publishSet(t, "3")
		assert.Equal(t, token.Ready, r.Status().State)
	}
	a.Labels = map[string]string{"a": ""}
	r.mutations.look()
	assert.Zero(t, r.Status().Objects)
}
