package safestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// comparing is a rig whose set is complete at version 10. It held "gone", which has been
// deleted since deletions are remembered.
func comparing(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.publishSet(t, "8", mapOf("A", "a", "5"), mapOf("A", "b", "7"), mapOf("A", "gone", "6"))
	r.Remember(true)
	require.NoError(t, r.Apply(watch.Deleted, mapOf("A", "gone", "10")))
	return r
}

// What a proof brings is reflected, or is still to come.
func TestReflects(t *testing.T) {
	r := comparing(t)
	for name, test := range map[string]struct {
		event watch.EventType
		obj   *Map
		want  bool
	}{
		"the same":                        {watch.Modified, mapOf("A", "a", "5"), true},
		"an older state":                  {watch.Added, mapOf("A", "a", "4"), true},
		"a newer state":                   {watch.Modified, mapOf("A", "a", "11"), false},
		"one that is not there":           {watch.Added, mapOf("A", "new", "9"), false},
		"one that was deleted since":      {watch.Modified, mapOf("A", "gone", "6"), true},
		"its successor":                   {watch.Added, withUID(mapOf("A", "gone", "9"), "other"), false},
		"a predecessor":                   {watch.Added, withUID(mapOf("A", "a", "3"), "other"), true},
		"a successor":                     {watch.Added, withUID(mapOf("A", "a", "9"), "other"), false},
		"a deletion":                      {watch.Deleted, mapOf("A", "a", "9"), false},
		"a deletion as it was last":       {watch.Deleted, mapOf("A", "a", "5"), false},
		"the deletion of what is gone":    {watch.Deleted, mapOf("A", "gone", "10"), true},
		"the deletion of what never was":  {watch.Deleted, mapOf("A", "new", "9"), true},
		"the deletion of its predecessor": {watch.Deleted, withUID(mapOf("A", "a", "3"), "other"), true},
	} {
		assert.Equal(t, test.want, r.Reflects(test.event, test.obj), name)
	}
}

// A list of one object is compared with the set: its object, and where the versions are the
// same also the count.
func TestCheck(t *testing.T) {
	r := comparing(t)
	var none metav1.Object
	for name, test := range map[string]struct {
		version string
		obj     metav1.Object
		count   int64
		want    watcher.Agreement
	}{
		"the same":                     {"10", mapOf("A", "a", "5"), 2, watcher.Agrees},
		"no count":                     {"10", mapOf("A", "a", "5"), -1, watcher.Agrees},
		"another count":                {"10", mapOf("A", "a", "5"), 3, watcher.Contradicts},
		"another count, later":         {"11", mapOf("A", "a", "5"), 3, watcher.Agrees},
		"empty":                        {"10", none, 0, watcher.Contradicts},
		"empty, later":                 {"11", none, 0, watcher.Agrees},
		"missing":                      {"10", mapOf("A", "new", "9"), -1, watcher.Contradicts},
		"new":                          {"11", mapOf("A", "new", "11"), -1, watcher.Awaits},
		"changed":                      {"11", mapOf("A", "a", "11"), -1, watcher.Awaits},
		"older than it can be":         {"10", mapOf("A", "a", "4"), -1, watcher.Contradicts},
		"changed since the list":       {"4", mapOf("A", "a", "4"), -1, watcher.Agrees},
		"deleted since the list":       {"9", mapOf("A", "gone", "6"), -1, watcher.Agrees},
		"its successor, not yet there": {"11", withUID(mapOf("A", "gone", "11"), "other"), -1, watcher.Awaits},
	} {
		got := r.Check(watcher.Sample{Version: test.version, Object: test.obj, Count: test.count}, "10")
		assert.Equal(t, test.want, got, name)
	}
}

// An audit is compared key by key. What was changed meanwhile is compared by versions, and
// not excused.
func TestCompare(t *testing.T) {
	right := []*Map{mapOf("A", "a", "5"), mapOf("A", "b", "7")}
	for name, test := range map[string]struct {
		version string
		listed  []*Map
		want    watcher.Agreement
		example string
	}{
		"the same":                      {"10", right, watcher.Agrees, ""},
		"deleted since":                 {"9", append([]*Map{mapOf("A", "gone", "6")}, right...), watcher.Agrees, ""},
		"changed since":                 {"6", []*Map{mapOf("A", "a", "5"), mapOf("A", "b", "6")}, watcher.Agrees, ""},
		"created since":                 {"6", right[:1], watcher.Agrees, ""},
		"gone":                          {"10", right[1:], watcher.Contradicts, "A/a is gone from the server"},
		"gone, later":                   {"11", right[1:], watcher.Awaits, "A/a is gone from the server"},
		"missing":                       {"10", append([]*Map{mapOf("A", "new", "9")}, right...), watcher.Contradicts, "A/new is missing"},
		"missing, later":                {"11", append([]*Map{mapOf("A", "new", "11")}, right...), watcher.Awaits, "A/new is missing"},
		"newer on the server":           {"11", []*Map{mapOf("A", "a", "11"), right[1]}, watcher.Awaits, "A/a is another one on the server"},
		"newer than it can be":          {"10", []*Map{mapOf("A", "a", "4"), right[1]}, watcher.Contradicts, "A/a is another one on the server"},
		"the successor of what is gone": {"9", append([]*Map{withUID(mapOf("A", "gone", "9"), "other")}, right...), watcher.Contradicts, "A/gone is missing"},
	} {
		r := comparing(t)
		r.BeginAudit()
		for _, obj := range test.listed {
			require.NoError(t, r.Audit(obj))
		}
		got, err := r.Compare(test.version, "10")
		assert.Equal(t, test.want, got, name)
		if test.example == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, test.example, name)
		}
	}
}

// What a watch brings from before an audit, or a proof, was reflected then: it is passed
// over where that is so, and never where it is not.
func TestEventsFromBeforeAProof(t *testing.T) {
	r := comparing(t)
	r.Advance("20") // by a proof: nothing happened up to there
	apply := func(event watch.EventType, obj *Map) error { return r.writer.Apply(event, obj, "10") }
	assert.NoError(t, apply(watch.Modified, mapOf("A", "a", "5")), "it is reflected")
	assert.ErrorIs(t, apply(watch.Modified, mapOf("A", "a", "15")), watcher.ErrContradicts)
	assert.ErrorIs(t, apply(watch.Added, mapOf("A", "new", "15")), watcher.ErrContradicts)
	assert.ErrorIs(t, apply(watch.Added, mapOf("A", "new", "9")), watcher.ErrOutOfOrder)
	assert.NoError(t, apply(watch.Deleted, mapOf("A", "never", "15")))

	r.BeginAudit()
	require.NoError(t, r.Audit(mapOf("A", "a", "5")))
	require.NoError(t, r.Audit(mapOf("A", "b", "7")))
	_, err := r.Compare("20", "20")
	require.NoError(t, err)
	r.Prove(watcher.Proof{AsOf: time.Now(), Number: 9})
	assert.NoError(t, apply(watch.Added, mapOf("A", "new", "15")), "the audit would have listed it: it is gone again")
	_, ok := r.current.Load().set.identity(key("A", "new"))
	assert.False(t, ok)
}
