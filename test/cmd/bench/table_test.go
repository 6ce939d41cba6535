package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/test/bench"
)

func TestTableShowsMediansAndRatios(t *testing.T) {
	operation := bench.Operation{
		Name:       "get",
		Units:      []string{"ns/op", "B/object"},
		Contenders: []bench.Contender{{Name: "SafeStore"}, {Name: "other"}},
	}
	result := func(ns time.Duration, held float64) testing.BenchmarkResult {
		return testing.BenchmarkResult{
			N: 10, T: 10 * ns, MemAllocs: 20, MemBytes: 400, Extra: map[string]float64{"B/object": held},
		}
	}
	var out strings.Builder
	require.NoError(t, tabulate(&out, operation, [][]testing.BenchmarkResult{
		{result(100, 50), result(900, 50), result(200, 50)}, // one round was disturbed
		{result(200, 25), result(1800, 25), result(300, 25)},
	}))
	var rows []string
	for row := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(row), " "))
	}
	assert.Equal(t, []string{
		"",
		"get ns/op ratio B/op allocs/op",
		"SafeStore 200 1.00 40 2",
		"other 300 2.00 40 2",
		"",
		"get B/object ratio",
		"SafeStore 50.0 1.00",
		"other 25.0 0.50",
	}, rows)
}

func TestMedian(t *testing.T) {
	assert.Equal(t, 2.0, median([]float64{3, 1, 2}))
	assert.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	assert.Equal(t, 7.0, median([]float64{7}))
}
