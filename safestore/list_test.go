package safestore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

// No restriction is taken back by another one: what is listed is what all of them
// let through, in whichever order they come.
func TestRestrictionsApplyTogether(t *testing.T) {
	r := newRig(t)
	r.index(t, WithIndex("letters", letters), WithLabelIndex[*Map]("word"))
	a, ab, ba := worded("A", "a", "a"), worded("A", "ab", "ab"), worded("B", "ba", "ba")
	for _, m := range []*Map{a, ab} {
		m.Labels["tier"] = "db"
	}
	r.publishSet(t, "1", a, ab, ba)
	s, err := r.Snapshot()
	require.NoError(t, err)

	word := func(word string) ListOption { return MatchingLabels(map[string]string{"word": word}) }
	db, none := MatchingLabelsSelector(parse(t, "tier=db")), MatchingLabelsSelector(labels.Nothing())
	for name, tc := range map[string]struct {
		opts []ListOption
		want []string
	}{
		"labels twice":               {[]ListOption{word("ab"), db}, []string{"A/ab"}},
		"labels that exclude":        {[]ListOption{word("ba"), db}, nil},
		"labels, no labels":          {[]ListOption{word("ab"), MatchingLabels(nil)}, []string{"A/ab"}},
		"labels, a nil selector":     {[]ListOption{word("ab"), MatchingLabelsSelector(nil)}, []string{"A/ab"}},
		"labels, everything":         {[]ListOption{word("ab"), MatchingLabelsSelector(labels.Everything())}, []string{"A/ab"}},
		"labels, nothing":            {[]ListOption{word("ab"), none}, nil},
		"two indexes":                {[]ListOption{ByIndex("letters", "a"), ByIndex("word", "ab")}, []string{"A/ab"}},
		"two values of one index":    {[]ListOption{ByIndex("letters", "a"), ByIndex("letters", "b")}, []string{"A/ab", "B/ba"}},
		"three values":               {[]ListOption{ByIndex("letters", "a"), ByIndex("word", "ba"), ByIndex("letters", "b")}, []string{"B/ba"}},
		"indexes that exclude":       {[]ListOption{ByIndex("word", "a"), ByIndex("word", "ab")}, nil},
		"indexes and a namespace":    {[]ListOption{ByIndex("letters", "a"), ByIndex("letters", "b"), InNamespace("A")}, []string{"A/ab"}},
		"indexes and labels":         {[]ListOption{ByIndex("letters", "a"), ByIndex("letters", "b"), db}, []string{"A/ab"}},
		"one namespace twice":        {[]ListOption{InNamespace("A"), InNamespace("A")}, []string{"A/a", "A/ab"}},
		"a namespace, no namespace":  {[]ListOption{InNamespace("B"), InNamespace("")}, []string{"B/ba"}},
		"two limits":                 {[]ListOption{Limit(2), Limit(1)}, []string{"A/a"}},
		"a limit, and no limit":      {[]ListOption{Limit(1), Limit(0)}, []string{"A/a"}},
		"a limit of what two select": {[]ListOption{ByIndex("letters", "b"), word("ba"), Limit(1)}, []string{"B/ba"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				assert.Equal(t, append([]string{}, tc.want...), namesOf(listed(t, s, append(tc.opts, Sorted())...)))
				count, err := s.Count(tc.opts...)
				require.NoError(t, err)
				assert.Equal(t, len(tc.want), count)
				slices.Reverse(tc.opts)
			}
		})
	}
}

// What cannot be applied is an error of every read, and never the whole set.
func TestRestrictionsThatCannotBeApplied(t *testing.T) {
	r := newRig(t)
	r.index(t, WithIndex("letters", letters))
	r.publishSet(t, "1", worded("A", "a", "a"), worded("B", "b", "b"))
	for name, tc := range map[string]struct {
		opts []ListOption
		want string
	}{
		"an index without a name":   {[]ListOption{ByIndex("", "a")}, `safestore: no index "": there are "letters"`},
		"the second of two indexes": {[]ListOption{ByIndex("letters", "a"), ByIndex("no", "a")}, `safestore: no index "no": there are "letters"`},
		"two namespaces":            {[]ListOption{InNamespace("A"), InNamespace("B")}, `safestore: InNamespace of both "A" and "B"`},
		"a nil option":              {[]ListOption{nil}, "safestore: a ListOption is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := r.List(t.Context(), tc.opts...)
			assert.Nil(t, list)
			assert.EqualError(t, err, tc.want)
			assert.NotErrorIs(t, err, ErrNotReady)
			s, err := r.Snapshot()
			require.NoError(t, err)
			seq, err := s.Select(tc.opts...)
			assert.Nil(t, seq)
			assert.EqualError(t, err, tc.want)
			_, err = s.Count(tc.opts...)
			assert.EqualError(t, err, tc.want)
			for _, err := range r.Subscribe("x", tc.opts...).Changes(t.Context()) {
				assert.Error(t, err)
			}
		})
	}
}

// A subscription follows what all its restrictions let through.
func TestSubscriptionRestrictionsApplyTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		both, one := worded("A", "both", "a"), worded("A", "one", "a")
		both.Labels["tier"] = "db"
		r.publishSet(t, "20", both, one)
		l := listen(t, r.store, nil, MatchingLabels(map[string]string{"word": "a"}),
			MatchingLabels(map[string]string{"tier": "db"}), MatchingLabelsSelector(nil))
		l.said("Init 2", "Added both 1", "InitDone 2")
	})
}
