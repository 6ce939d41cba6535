package bench

import (
	"errors"
	"fmt"
	"testing"
)

// Operation is one thing that caches do, and who does it. SafeStore's contender
// comes first: the others are compared with it.
type Operation struct {
	// Name says what is done.
	Name string
	// Units are what is compared: "ns/op", or metrics of the operation's own.
	Units []string
	// Contenders do it, each in its own way.
	Contenders []Contender
}

// Contender is one way to do an operation.
type Contender struct {
	// Name says whose way it is.
	Name string

	run func(*testing.B) error
}

// Measure runs the contender for as long as the flag test.benchtime says.
func (c Contender) Measure() (testing.BenchmarkResult, error) {
	var err error
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		err = c.run(b)
	})
	if err == nil && result.N == 0 {
		err = errors.New("it was not run")
	}
	if err != nil {
		return result, fmt.Errorf("%s: %w", c.Name, err)
	}
	return result, nil
}

// Value returns what a measurement says in a unit.
func Value(result testing.BenchmarkResult, unit string) float64 {
	if unit == nsPerOp {
		return float64(result.T.Nanoseconds()) / float64(result.N)
	}
	return result.Extra[unit]
}

const nsPerOp = "ns/op"
