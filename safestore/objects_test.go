package safestore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// TestObjects compares the set with a Go map, through random edits, alone and in
// batches, and looks again at older versions at the end.
func TestObjects(t *testing.T) {
	type version struct {
		set  objects[*Map]
		want map[types.NamespacedName]*Map
	}
	seeds(t, 200, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		anyKey := func() types.NamespacedName {
			return key([]string{"", "A", "B", "C"}[rnd.IntN(4)], strconv.Itoa(rnd.IntN(6)))
		}
		var set objects[*Map]
		want := map[types.NamespacedName]*Map{}
		var history []version
		for range 100 {
			switch rnd.IntN(5) {
			case 0, 1:
				k := anyKey()
				obj := mapOf(k.Namespace, k.Name, "1")
				set = with(set, obj)
				want[k] = obj
			case 2:
				k := anyKey()
				set = without(set, k)
				delete(want, k)
			case 3:
				b := set.edit()
				for range rnd.IntN(10) {
					k := anyKey()
					if rnd.IntN(3) == 0 {
						b.delete(k)
						delete(want, k)
						continue
					}
					obj := mapOf(k.Namespace, k.Name, "1")
					b.set(Key(obj), obj)
					want[k] = obj
				}
				set = b.objects()
			case 4:
				discarded := mapOf("A", "discarded", "1")
				b := set.edit() // of which nothing comes
				b.set(Key(discarded), discarded)
				b.delete(anyKey())
			}
			history = append(history, version{set, maps.Clone(want)})
			compareObjects(t, set, want)
		}
		for _, v := range history {
			compareObjects(t, v.set, v.want)
		}
	})
}

func compareObjects(t *testing.T, set objects[*Map], want map[types.NamespacedName]*Map) {
	t.Helper()
	got := map[types.NamespacedName]*Map{}
	left := map[string]bool{} // namespaces that were passed
	last := "none"
	for obj := range set.all() {
		k := Key(obj)
		if got[k] != nil {
			t.Fatalf("%s comes twice", k)
		}
		if k.Namespace != last {
			if left[k.Namespace] {
				t.Fatalf("namespace %q comes in two pieces", k.Namespace)
			}
			left[last], last = true, k.Namespace
		}
		got[k] = obj
	}
	if !maps.Equal(want, got) {
		t.Fatalf("want %d objects %v, got %d %v", len(want), slices.Collect(maps.Keys(want)), len(got), slices.Collect(maps.Keys(got)))
	}
	if set.count != len(want) {
		t.Fatalf("count is %d of %d", set.count, len(want))
	}
	spaces := map[string]int{}
	for k, obj := range want {
		spaces[k.Namespace]++
		if found, ok := set.get(k); !ok || found != obj {
			t.Fatalf("%s is not found", k)
		}
	}
	if set.namespaces.Len() != len(spaces) {
		t.Fatalf("%d namespaces of %d", set.namespaces.Len(), len(spaces))
	}
	for name, n := range spaces {
		if got := len(slices.Collect(set.in(name))); got != n {
			t.Fatalf("%d objects of %d in %q", got, n, name)
		}
	}
	if _, ok := set.get(key("nowhere", "1")); ok || len(slices.Collect(set.in("nowhere"))) != 0 {
		t.Fatal("there is something nowhere")
	}
}

func TestObjectsIterationStops(t *testing.T) {
	var set objects[*Map]
	for i := range 10 {
		set = with(with(set, mapOf("A", strconv.Itoa(i), "1")), mapOf("B", strconv.Itoa(i), "1"))
	}
	for _, seq := range []func(func(*Map) bool){set.all(), set.in("A")} {
		n := 0
		for range seq {
			if n++; n == 3 {
				break
			}
		}
		assert.Equal(t, 3, n)
	}
}

func TestSnapshotReads(t *testing.T) {
	r := newRig(t)
	a, b, node := mapOf("A", "a", "1"), mapOf("B", "b", "1"), mapOf("", "n", "1")
	r.publishSet(t, "7", a, b, node)
	s, err := r.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, "7", s.ResourceVersion())
	assert.Equal(t, 3, s.Len())
	got, err := s.Get(key("", "n"))
	require.NoError(t, err)
	assert.Same(t, node, got)
	_, err = s.Get(key("A", "b"))
	assert.EqualError(t, err, `configmaps "b" not found`)
	assert.ElementsMatch(t, []*Map{a, b, node}, listed(t, s))
	assert.ElementsMatch(t, []*Map{a, b, node}, listed(t, s, InNamespace("")))
	assert.Equal(t, []*Map{b}, listed(t, s, InNamespace("B")))
	none := listed(t, s, InNamespace("C"))
	assert.NotNil(t, none)
	assert.Empty(t, none)

	list := listed(t, s)
	clear(list) // the caller's own
	assert.ElementsMatch(t, []*Map{a, b, node}, listed(t, s))
	all := maps.Collect(s.All())
	assert.Equal(t, map[types.NamespacedName]*Map{key("A", "a"): a, key("B", "b"): b, key("", "n"): node}, all)

	// It does not change, whatever happens to the store.
	require.NoError(t, r.Apply(watch.Deleted, mapOf("A", "a", "8")))
	require.NoError(t, r.Apply(watch.Added, mapOf("A", "c", "9")))
	r.publishSet(t, "10")
	assert.Equal(t, 3, s.Len())
	assert.Equal(t, "7", s.ResourceVersion())
	assert.Len(t, listed(t, s), 3)
}

// C42: a relist keeps the objects that it brings unchanged, so that it needs no
// second set of them.
func TestC42UnchangedObjectsAreShared(t *testing.T) {
	r := newRig(t)
	same, newer, recreated, unversioned := mapOf("A", "same", "1"), mapOf("A", "newer", "1"), mapOf("A", "recreated", "1"), mapOf("A", "unversioned", "")
	r.publishSet(t, "5", same, newer, recreated, unversioned)
	again := mapOf("A", "recreated", "1")
	again.UID = "another"
	r.publishSet(t, "6", mapOf("A", "same", "1"), mapOf("A", "newer", "6"), again, mapOf("A", "unversioned", ""))
	s, err := r.Snapshot()
	require.NoError(t, err)
	get := func(name string) *Map {
		obj, err := s.Get(key("A", name))
		require.NoError(t, err)
		return obj
	}
	assert.Same(t, same, get("same"))
	assert.NotSame(t, newer, get("newer"))
	assert.Equal(t, "6", get("newer").ResourceVersion)
	assert.EqualValues(t, "another", get("recreated").UID)
	assert.NotSame(t, unversioned, get("unversioned"), "no version tells nothing")

	fake := newRig(t)
	fake.Unordered()
	old, changed := mapOf("A", "a", "7"), mapOf("A", "a", "7")
	changed.Data = map[string]string{"key": "2"}
	fake.publishSet(t, "1", old)
	fake.publishSet(t, "2", changed)
	s, err = fake.Snapshot()
	require.NoError(t, err)
	assert.Same(t, changed, get("a"), "a fake's versions tell nothing")
}

// A WatchList's initial events can change what they brought before.
func TestBuildTakesEvents(t *testing.T) {
	r := newRig(t)
	r.Begin()
	require.NoError(t, r.Build(watch.Added, mapOf("A", "a", "1")))
	require.NoError(t, r.Build(watch.Added, mapOf("A", "b", "1")))
	require.NoError(t, r.Build(watch.Modified, mapOf("A", "a", "2")))
	require.NoError(t, r.Build(watch.Deleted, mapOf("A", "b", "3")))
	require.NoError(t, r.Build(watch.Deleted, mapOf("A", "unknown", "3")))
	_, err := r.Snapshot()
	assert.ErrorIs(t, err, ErrNotReady, "built aside")
	r.put(t, "3")
	s, err := r.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, "A/a=uid of A/a@2", contents(s))

	r.Begin()
	require.NoError(t, r.Build(watch.Added, mapOf("A", "discarded", "4")))
	r.Begin() // begun again
	r.put(t, "5")
	s, err = r.Snapshot()
	require.NoError(t, err)
	assert.Zero(t, s.Len())
}

// C36: what an event changes, by what the set has already. The set holds a@5 and
// is at version 10.
func TestC36EventRules(t *testing.T) {
	other := func(obj *Map) *Map { obj.UID = "another"; return obj }
	const before = "A/a=uid of A/a@5"
	for name, tc := range map[string]struct {
		fake    bool
		event   watch.EventType
		obj     runtime.Object
		want    string // the contents
		version string // the set's
		err     error
	}{
		"newer":                         {event: watch.Modified, obj: mapOf("A", "a", "11"), want: "A/a=uid of A/a@11", version: "11"},
		"newer, called added":           {event: watch.Added, obj: mapOf("A", "a", "11"), want: "A/a=uid of A/a@11", version: "11"},
		"new":                           {event: watch.Added, obj: mapOf("A", "b", "11"), want: before + " A/b=uid of A/b@11", version: "11"},
		"new, called modified":          {event: watch.Modified, obj: mapOf("A", "b", "11"), want: before + " A/b=uid of A/b@11", version: "11"},
		"new at the set's version":      {event: watch.Added, obj: mapOf("A", "b", "10"), want: before + " A/b=uid of A/b@10", version: "10"},
		"replayed":                      {event: watch.Modified, obj: mapOf("A", "a", "5"), want: before, version: "10"},
		"replayed as added":             {event: watch.Added, obj: mapOf("A", "a", "5"), want: before, version: "10"},
		"replayed from before":          {event: watch.Modified, obj: mapOf("A", "a", "4"), want: before, version: "10"},
		"its predecessor is added":      {event: watch.Added, obj: other(mapOf("A", "a", "3")), want: before, version: "10"},
		"deleted":                       {event: watch.Deleted, obj: mapOf("A", "a", "11"), want: "", version: "11"},
		"deleted at its version":        {event: watch.Deleted, obj: mapOf("A", "a", "5"), want: "", version: "10"},
		"its predecessor is deleted":    {event: watch.Deleted, obj: other(mapOf("A", "a", "4")), want: before, version: "10"},
		"deleted and never seen":        {event: watch.Deleted, obj: mapOf("A", "b", "11"), want: before, version: "10"},
		"recreated":                     {event: watch.Added, obj: other(mapOf("A", "a", "11")), want: "A/a=another@11", version: "11"},
		"recreated at its version":      {event: watch.Added, obj: other(mapOf("A", "a", "10")), want: "A/a=another@10", version: "10"},
		"from before the set":           {event: watch.Modified, obj: mapOf("A", "a", "9"), want: before, version: "10", err: watcher.ErrOutOfOrder},
		"new from before the set":       {event: watch.Added, obj: mapOf("A", "b", "9"), want: before, version: "10", err: watcher.ErrOutOfOrder},
		"without a version":             {event: watch.Modified, obj: mapOf("A", "a", ""), want: "A/a=uid of A/a@", version: "10"},
		"incomparable version":          {event: watch.Modified, obj: mapOf("A", "a", "x"), want: "A/a=uid of A/a@x", version: "x"},
		"fake: older":                   {fake: true, event: watch.Modified, obj: mapOf("A", "a", "1"), want: "A/a=uid of A/a@1", version: "10"},
		"fake: equal":                   {fake: true, event: watch.Modified, obj: other(mapOf("A", "a", "5")), want: "A/a=another@5", version: "10"},
		"fake: new and older":           {fake: true, event: watch.Added, obj: mapOf("A", "b", "1"), want: before + " A/b=uid of A/b@1", version: "10"},
		"fake: deleted at an older one": {fake: true, event: watch.Deleted, obj: mapOf("A", "a", "1"), want: "", version: "10"},
		"fake: deleted and never seen":  {fake: true, event: watch.Deleted, obj: mapOf("A", "b", "1"), want: before, version: "10"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if tc.fake {
				r.Unordered()
			}
			r.publishSet(t, "10", mapOf("A", "a", "5"))
			tok := r.Token()
			err := r.Apply(tc.event, tc.obj)
			assert.ErrorIs(t, err, tc.err)
			if tc.err != nil {
				assert.ErrorContains(t, err, "*v1.ConfigMap A/")
			}
			s, err := r.Snapshot()
			require.NoError(t, err)
			assert.Equal(t, tc.want, contents(s))
			assert.Equal(t, tc.version, s.ResourceVersion())
			assert.Same(t, tok, s.Token(), "an event moves no token")
		})
	}
}

// What cannot be kept is an error, in a list and in an event, and changes nothing.
func TestUnusableObjects(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "10", mapOf("A", "a", "5"))
	for name, obj := range map[string]runtime.Object{
		"another type": &runtime.Unknown{},
		"no name":      &Map{},
		"nil":          nil,
	} {
		assert.Error(t, r.Apply(watch.Added, obj), name)
		assert.Error(t, r.Apply(watch.Deleted, obj), name)
		r.Begin()
		assert.Error(t, r.Build(watch.Added, obj), name)
		assert.Error(t, r.Build(watch.Deleted, obj), name)
	}
	s, err := r.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, "A/a=uid of A/a@5", contents(s))
}

// Monotonic: a bookmark that carries no version says nothing about versions.
func TestBookmarkWithoutAVersion(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "10")
	r.Advance("")
	s, err := r.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, "10", s.ResourceVersion())
	assert.ErrorIs(t, r.Apply(watch.Added, mapOf("A", "a", "9")), watcher.ErrOutOfOrder)
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			var set objects[*Map]
			builder := set.edit()
			for i := range n {
				obj := mapOf(strconv.Itoa(i%10), strconv.Itoa(i), "1")
				builder.set(Key(obj), obj)
			}
			set = builder.objects()
			obj := mapOf("1", "1", "2")
			for b.Loop() {
				set = with(set, obj)
			}
		})
	}
}

func listed(t *testing.T, s *Snapshot[*Map], opts ...ListOption) []*Map {
	t.Helper()
	list, err := s.List(opts...)
	require.NoError(t, err)
	return list
}

// with and without are edits of one object each.

func with(set objects[*Map], obj *Map) objects[*Map] {
	b := set.edit()
	b.set(Key(obj), obj)
	return b.objects()
}

func without(set objects[*Map], key types.NamespacedName) objects[*Map] {
	b := set.edit()
	b.delete(key)
	return b.objects()
}

// Any strings can be keys: each finds its own object, in its own namespace.
func FuzzKeys(f *testing.F) {
	f.Add("default", "a", "default", "b")
	f.Add("", "a/b", "a", "b")
	f.Add("a", "", "", "a")
	f.Fuzz(func(t *testing.T, ns1, name1, ns2, name2 string) {
		one, two := mapOf(ns1, name1, "1"), mapOf(ns2, name2, "2")
		set := with(with(objects[*Map]{}, one), two)
		want := map[types.NamespacedName]*Map{Key(one): one}
		want[Key(two)] = two
		compareObjects(t, set, want)
		got := slices.Collect(set.in(ns1))
		for _, obj := range got {
			require.Equal(t, ns1, obj.Namespace)
		}
		require.Len(t, got, set.countIn(ns1))
		set = without(set, Key(one))
		delete(want, Key(one))
		compareObjects(t, set, want)
	})
}
