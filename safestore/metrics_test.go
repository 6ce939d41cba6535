package safestore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// Names are what Prometheus' own guidelines want.
func TestMetricsAreNamedByTheRules(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics() {
		t.Run(m.Name, func(t *testing.T) {
			assert.False(t, seen[m.Name], "twice")
			seen[m.Name] = true
			assert.Regexp(t, `^safestore(_[a-z]+)+$`, m.Name)
			assert.Contains(t, []MetricType{Gauge, Counter, Histogram}, m.Type)
			assert.Equal(t, m.Type == Counter, strings.HasSuffix(m.Name, "_total"))
			assert.Equal(t, m.Unit == "seconds", strings.HasSuffix(m.Name, "_seconds"), "unit %q", m.Unit)
			assert.Contains(t, []string{"", "seconds"}, m.Unit, "a base unit")
			assert.NotContains(t, m.Name, string(m.Type))
			assert.Regexp(t, `^[A-Z].*\.$`, m.Help)
			require.NotEmpty(t, m.Labels)
			of := "store"
			if strings.HasPrefix(m.Name, "safestore_group_") {
				of = "group"
			}
			assert.Equal(t, of, m.Labels[0])
			for _, label := range m.Labels {
				assert.Regexp(t, regexp.MustCompile(`^[a-z]+$`), label)
				assert.NotContains(t, m.Name, "_by_"+label)
			}
		})
	}
}

// Each reason has a value before it happens, so all must be known here.
func TestReasonsAreThoseOfInvalidation(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../invalidation/reason.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var declared []invalidation.Reason
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			declared = append(declared, invalidation.Reason(reason))
		}
		return true
	})
	require.NotEmpty(t, declared)
	assert.ElementsMatch(t, declared, reasons)
}

// samples is what there is of some metrics, by name and labels.
func samples(of []Readiness, prefixes ...string) map[string]float64 {
	all := map[string]float64{}
	for s := range Samples(of...) {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s.Metric, prefix) }) {
			all[strings.Join(append([]string{s.Metric}, s.Labels...), " ")] = s.Value
		}
	}
	return all
}

// What a read would find out, a poll finds out: that the bound has passed although
// no timer has run (C7).
func TestSamplesOfABoundThatPassedUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.bound = 10 * time.Second
		r.publishSet(t, "1", mapOf("a", "b", "1"))
		of := []Readiness{r.store}
		time.Sleep(10 * time.Second)
		assert.Equal(t, map[string]float64{"safestore_ready v1.ConfigMap": 1, "safestore_staleness_seconds v1.ConfigMap": 10},
			samples(of, "safestore_ready", "safestore_staleness"))
		time.Sleep(time.Second)
		assert.Equal(t, map[string]float64{"safestore_ready v1.ConfigMap": 0, "safestore_staleness_seconds v1.ConfigMap": 11},
			samples(of, "safestore_ready", "safestore_staleness"))
		assert.EqualValues(t, 1, samples(of, "safestore_rev")["safestore_revocations_total v1.ConfigMap Stale"])
	})
}

func TestSamplesOfGroupsAndNames(t *testing.T) {
	one, two := newRig(t), newRig(t)
	inner, err := NewGroup("inner", one.store)
	require.NoError(t, err)
	outer, err := NewGroup("outer", inner, two.store)
	require.NoError(t, err)
	empty, err := NewGroup("outer")
	require.NoError(t, err)
	one.publishSet(t, "1")
	var none *store
	of := []Readiness{nil, none, empty, outer, inner, two.store}
	assert.Equal(t, map[string]float64{
		"safestore_group_ready outer": 0, "safestore_group_ready outer#2": 0, "safestore_group_ready inner": 1,
		"safestore_ready v1.ConfigMap": 1, "safestore_ready v1.ConfigMap#2": 0,
	}, samples(of, "safestore_ready", "safestore_group_ready"), "each of all once, by a name of its own")
	two.publishSet(t, "1")
	assert.EqualValues(t, 1, samples(of, "safestore_group_ready")["safestore_group_ready outer#2"])
	two.revokeFor(invalidation.NotAllowed, nil)
	got := samples(of, "safestore_group_ready", "safestore_group_generation", "safestore_group_rev")
	assert.EqualValues(t, 0, got["safestore_group_ready outer#2"])
	assert.EqualValues(t, 2, got["safestore_group_generation outer#2"])
	assert.EqualValues(t, 1, got["safestore_group_revocations_total outer#2 Forbidden"])
	assert.Contains(t, got, "safestore_group_revocations_total inner Stuck", "from the beginning")

	require.True(t, outer.Remove(two.Name()))
	assert.NotContains(t, samples([]Readiness{outer}, "safestore"), "safestore_ready v1.ConfigMap#2", "nothing is kept")
}

func TestSamplesCanBeLeft(t *testing.T) {
	r := newRig(t)
	g, err := NewGroup("all", r.store)
	require.NoError(t, err)
	all := len(slices.Collect(Samples(g)))
	for n := range all {
		seen := 0
		for range Samples(g, g) {
			if seen++; seen > n {
				break
			}
		}
		assert.Equal(t, n+1, seen)
	}
}

// A reason of a program's own policy is counted like those of the library.
func TestSamplesOfForeignReasons(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1")
	r.writer.Revoke(invalidation.Decision{Revoke: "Maintenance"}, nil)
	assert.EqualValues(t, 1, samples([]Readiness{r.store}, "safestore_rev")["safestore_revocations_total v1.ConfigMap Maintenance"])
	status := r.Status()
	assert.Equal(t, map[invalidation.Reason]uint64{"Maintenance": 1}, status.Revocations)
	status.Revocations["Maintenance"] = 7
	assert.EqualValues(t, 1, r.Status().Revocations["Maintenance"], "a status is the caller's own")
}
