package bench

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newSuite(t testing.TB, size int) *Suite {
	t.Helper()
	suite, err := New(t.Context(), size)
	require.NoError(t, err)
	t.Cleanup(suite.Close)
	return suite
}

// once makes measurements in a test as short as they can be.
func once(t *testing.T) {
	t.Helper()
	benchtime := flag.Lookup("test.benchtime").Value
	before := benchtime.String()
	require.NoError(t, benchtime.Set("1x"))
	t.Cleanup(func() { assert.NoError(t, benchtime.Set(before)) })
}

func BenchmarkAll(b *testing.B) {
	for _, operation := range newSuite(b, 100_000).Operations() {
		for _, contender := range operation.Contenders {
			b.Run(operation.Name+"/"+contender.Name, func(b *testing.B) {
				b.ReportAllocs()
				require.NoError(b, contender.run(b))
			})
		}
	}
}

// Each measurement works, and finds what it should: a small one of each shows.
func TestEachIsMeasured(t *testing.T) {
	once(t)
	for _, operation := range newSuite(t, 1000).Operations() {
		t.Run(operation.Name, func(t *testing.T) {
			for _, contender := range operation.Contenders {
				result, err := contender.Measure()
				require.NoError(t, err)
				for _, unit := range operation.Units {
					assert.Positive(t, Value(result, unit), "%s: %s", contender.Name, unit)
				}
			}
		})
	}
}

func TestTooFewPods(t *testing.T) {
	_, err := New(t.Context(), 10)
	assert.ErrorContains(t, err, "1000")
}
