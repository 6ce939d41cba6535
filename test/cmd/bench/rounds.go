package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kube-safestore/kube-safestore/test/bench"
)

// measure returns the results of each contender, by round.
func measure(ctx context.Context, operation bench.Operation, rounds int) ([][]testing.BenchmarkResult, error) {
	results := make([][]testing.BenchmarkResult, len(operation.Contenders))
	for range rounds {
		for _, i := range rand.Perm(len(operation.Contenders)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			result, err := operation.Contenders[i].Measure()
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], result)
		}
	}
	return results, nil
}

// values returns what the results of one contender say in a unit, by round.
func values(results []testing.BenchmarkResult, unit string) []float64 {
	var found []float64
	for _, result := range results {
		found = append(found, bench.Value(result, unit))
	}
	return found
}

// ratios divides what two contenders did in the same round.
func ratios(of, to []float64) []float64 {
	var found []float64
	for i := range of {
		found = append(found, of[i]/to[i])
	}
	return found
}

// median returns the middle of values, of which there is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
