package safestore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// letters finds a Map by each letter of its label "word": some by none, some by
// several.
func letters(m *Map) []string { return strings.Split(m.Labels["word"], "") }

func worded(namespace, name, word string) *Map {
	m := mapOf(namespace, name, "1")
	m.Labels = map[string]string{"word": word}
	return m
}

// C53: objects and indexes of one version always agree. Random edits, in batches,
// against a plain map; every earlier version is looked at again in the end.
func TestC53IndexesAgreeWithObjects(t *testing.T) {
	for range 50 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			all := indexed(t, WithIndex("letters", letters), WithLabelIndex[*Map]("word"))
			type version struct {
				set  indexedSet[*Map]
				want map[types.NamespacedName]*Map
			}
			var versions []version
			set, want := indexedSet[*Map]{}, map[types.NamespacedName]*Map{}
			for range 60 {
				d := set.edit(all, limits{})
				for range 1 + rnd.IntN(5) {
					obj := worded(string(rune('A'+rnd.IntN(3))), fmt.Sprint(rnd.IntN(8)), "abcabc"[rnd.IntN(3):][:rnd.IntN(4)])
					if rnd.IntN(3) == 0 {
						require.NoError(t, d.delete(Key(obj)))
						delete(want, Key(obj))
					} else {
						require.NoError(t, d.set(obj))
						want[Key(obj)] = obj
					}
				}
				set = d.finish()
				versions = append(versions, version{set, maps.Clone(want)})
			}
			for _, v := range versions {
				s := &Snapshot[*Map]{set: v.set, indexes: all}
				assert.Len(t, v.want, s.Len())
				assert.ElementsMatch(t, slices.Collect(maps.Values(v.want)), listed(t, s))
				for _, letter := range []string{"a", "b", "c", "d"} {
					var with []*Map
					for _, m := range v.want {
						if strings.Contains(m.Labels["word"], letter) {
							with = append(with, m)
						}
					}
					assert.ElementsMatch(t, with, listed(t, s, ByIndex("letters", letter)))
				}
				for _, word := range []string{"", "a", "bc", "abc"} {
					var with []*Map
					for key, m := range v.want {
						if m.Labels["word"] == word && key.Namespace == "B" {
							with = append(with, m)
						}
					}
					slices.SortFunc(with, func(a, b *Map) int { return strings.Compare(a.Name, b.Name) })
					got := listed(t, s, ByIndex("word", word), InNamespace("B"), Sorted())
					assert.Equal(t, fmt.Sprint(namesOf(with)), fmt.Sprint(namesOf(got)))
				}
				for _, values := range v.set.indexed {
					for value, set := range values.All() {
						assert.NotZero(t, set.count, "value %q is of no object and takes memory", value)
					}
				}
			}
		})
	}
}

func namesOf(list []*Map) []string {
	names := []string{}
	for _, m := range list {
		names = append(names, Key(m).String())
	}
	return names
}

func TestListOptions(t *testing.T) {
	r := newRig(t)
	r.index(t, WithIndex("letters", letters), WithFieldIndex("word", func(m *Map) string { return m.Labels["word"] }))
	r.publishSet(t, "1", worded("B", "b", "ab"), worded("A", "z", "a"), worded("A", "a", "b"), worded("", "n", ""))
	s, err := r.Snapshot()
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		opts []ListOption
		want []string
	}{
		"all":                 {nil, []string{"/n", "A/a", "A/z", "B/b"}},
		"namespace":           {[]ListOption{InNamespace("A")}, []string{"A/a", "A/z"}},
		"no such namespace":   {[]ListOption{InNamespace("C")}, nil},
		"labels":              {[]ListOption{MatchingLabels(map[string]string{"word": "a"})}, []string{"A/z"}},
		"no labels":           {[]ListOption{MatchingLabels(nil)}, []string{"/n", "A/a", "A/z", "B/b"}},
		"selector":            {[]ListOption{MatchingLabelsSelector(parse(t, "word in (a, b)"))}, []string{"A/a", "A/z"}},
		"no selector":         {[]ListOption{MatchingLabelsSelector(nil)}, []string{"/n", "A/a", "A/z", "B/b"}},
		"index":               {[]ListOption{ByIndex("letters", "a")}, []string{"A/z", "B/b"}},
		"field index":         {[]ListOption{ByIndex("word", "ab")}, []string{"B/b"}},
		"field index, empty":  {[]ListOption{ByIndex("word", "")}, nil},
		"index, no such":      {[]ListOption{ByIndex("letters", "x")}, nil},
		"index and namespace": {[]ListOption{ByIndex("letters", "b"), InNamespace("A")}, []string{"A/a"}},
		"index and selector":  {[]ListOption{ByIndex("letters", "a"), MatchingLabelsSelector(parse(t, "word!=a"))}, []string{"B/b"}},
		"limit":               {[]ListOption{Limit(2)}, []string{"/n", "A/a"}},
		"limit over all":      {[]ListOption{Limit(9)}, []string{"/n", "A/a", "A/z", "B/b"}},
		"no limit":            {[]ListOption{Limit(-1)}, []string{"/n", "A/a", "A/z", "B/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, append([]string{}, tc.want...), namesOf(listed(t, s, append(tc.opts, Sorted())...)))
			assert.Len(t, listed(t, s, tc.opts...), len(tc.want), "in any order")
			count, err := s.Count(append(tc.opts, DeepCopy())...)
			require.NoError(t, err)
			assert.Equal(t, len(tc.want), count)
			var selected []string
			seq, err := s.Select(append(tc.opts, Sorted())...)
			require.NoError(t, err)
			for k, obj := range seq {
				assert.Equal(t, Key(obj), k)
				selected = append(selected, k.String())
			}
			assert.Equal(t, tc.want, selected)
		})
	}
	_, err = s.Select(ByIndex("words", "a"))
	assert.ErrorContains(t, err, "no index")
	_, err = s.Count(ByIndex("words", "a"))
	assert.ErrorContains(t, err, "no index")
	_, err = s.List(ByIndex("words", "a"))
	assert.EqualError(t, err, `safestore: no index "words": there are "letters", "word"`)
	_, err = r.List(t.Context(), ByIndex("words", "a"))
	assert.ErrorContains(t, err, "no index")
	assert.NotErrorIs(t, err, ErrNotReady)
}

// Iterations can be broken off, whatever they are made of.
func TestSelectStops(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", worded("A", "a", "x"), worded("A", "b", "x"), worded("B", "c", "x"))
	s, err := r.Snapshot()
	require.NoError(t, err)
	for _, opts := range [][]ListOption{
		nil, {Sorted()}, {Limit(2)}, {DeepCopy()}, {InNamespace("A")}, {MatchingLabels(map[string]string{"word": "x"})},
		{Sorted(), Limit(2), DeepCopy(), MatchingLabels(map[string]string{"word": "x"})},
	} {
		seq, err := s.Select(opts...)
		require.NoError(t, err)
		for range 2 { // and made again
			seen := 0
			for range seq {
				seen++
				break
			}
			assert.Equal(t, 1, seen)
		}
	}
}

// C51: copies are the caller's to change.
func TestC51DeepCopyReads(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", worded("A", "a", "x"))
	s, err := r.Snapshot()
	require.NoError(t, err)
	change := func(obj *Map, err error) {
		t.Helper()
		require.NoError(t, err)
		obj.Labels["word"] = "changed"
	}
	change(r.GetDeepCopy(t.Context(), key("A", "a")))
	change(s.GetDeepCopy(key("A", "a")))
	list, err := r.List(t.Context(), DeepCopy())
	change(list[0], err)
	seq, err := s.Select(DeepCopy())
	for _, obj := range seq {
		change(obj, err)
	}
	got, err := r.Get(t.Context(), key("A", "a"))
	require.NoError(t, err)
	assert.Equal(t, "x", got.Labels["word"])

	_, err = s.GetDeepCopy(key("A", "b"))
	assert.True(t, apierrors.IsNotFound(err))
	_, err = r.GetDeepCopy(t.Context(), key("A", "b"))
	assert.True(t, apierrors.IsNotFound(err))
}

// Any labels and any selector: what is listed is what matches.
func FuzzSelectors(f *testing.F) {
	f.Add("word=a", "word", "a")
	f.Add("word notin (a,b),!other", "word", "c")
	f.Fuzz(func(t *testing.T, selector, label, value string) {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return
		}
		obj := worded("A", "a", "x")
		obj.Labels[label] = value
		r := newRig(t)
		r.publishSet(t, "1", obj, worded("A", "b", "x"))
		s, err := r.Snapshot()
		require.NoError(t, err)
		want := 0
		for _, obj := range s.All() {
			if parsed.Matches(labels.Set(obj.Labels)) {
				want++
			}
		}
		assert.Len(t, listed(t, s, MatchingLabelsSelector(parsed)), want)
	})
}

// indexed returns the indexes that options make.
func indexed(t *testing.T, opts ...Option[*Map]) indexes[*Map] {
	t.Helper()
	s, err := New(sourceOf(mapList("1")), Options{}, opts...)
	require.NoError(t, err)
	return s.indexes
}

// index gives the store of a rig indexes, before its first set.
func (r *rig) index(t *testing.T, opts ...Option[*Map]) {
	t.Helper()
	r.store.indexes = indexed(t, opts...)
	r.store.current.Store(r.store.noSet())
}

func parse(t *testing.T, selector string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(selector)
	require.NoError(t, err)
	return parsed
}

// An index function that panics leaves no gap: the set cannot be complete.
func TestIndexThatPanicsIsBadData(t *testing.T) {
	r := newRig(t)
	r.index(t, WithIndex("bad", func(m *Map) []string {
		if m.Name == "bad" {
			panic("at " + m.Labels["word"])
		}
		return []string{m.Name}
	}))
	r.Begin()
	require.NoError(t, r.Build("ADDED", worded("A", "good", "")))
	err := r.Build("ADDED", worded("A", "bad", "secret"))
	assert.EqualError(t, err, `*v1.ConfigMap A/bad: index "bad": panic`)

	r.publishSet(t, "1", worded("A", "good", ""))
	bad := worded("A", "bad", "secret")
	bad.ResourceVersion = "2"
	assert.ErrorContains(t, r.Apply("ADDED", bad), `index "bad"`)
	s, err := r.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, 1, s.Len(), "and the set is as it was")
	assert.Len(t, listed(t, s, ByIndex("bad", "good")), 1)
}

func TestTypedOptionsAreValidated(t *testing.T) {
	source := sourceOf(mapList("1"))
	for want, bad := range map[string][]Option[*Map]{
		"safestore: WithIndex: the name is empty":             {WithIndex("", letters)},
		`safestore: WithIndex "a": the function is nil`:       {WithIndex[*Map]("a", nil)},
		`safestore: WithIndex "b": the function is nil`:       {WithFieldIndex[*Map]("b", nil)},
		`safestore: WithIndex "a": there is one of that name`: {WithIndex("a", letters), WithLabelIndex[*Map]("a")},
		"safestore: WithTransform: the function is nil":       {WithTransform[*Map](nil)},
	} {
		_, err := New(source, Options{}, bad...)
		assert.EqualError(t, err, want)
	}
	s, err := New[*Map](source, Options{})
	require.NoError(t, err)
	_, err = s.indexes.find("a")
	assert.EqualError(t, err, `safestore: no index "a": there are none`)
}
