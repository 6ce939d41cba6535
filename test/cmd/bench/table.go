package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/kube-safestore/kube-safestore/test/bench"
)

// tabulate prints the medians of an operation. What is allocated is only told of
// what is done often: elsewhere it is not the contender's own.
func tabulate(out io.Writer, operation bench.Operation, results [][]testing.BenchmarkResult) error {
	for _, unit := range operation.Units {
		perOp := unit == "ns/op"
		fmt.Fprintln(out)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		header := []string{operation.Name, unit, "ratio"}
		if perOp {
			header = append(header, "B/op", "allocs/op")
		}
		row(w, header)
		first := values(results[0], unit)
		for i, contender := range operation.Contenders {
			of := values(results[i], unit)
			cells := []string{contender.Name, number(median(of)), fmt.Sprintf("%.2f", median(ratios(of, first)))}
			if perOp {
				last := results[i][len(results[i])-1]
				cells = append(cells, strconv.FormatInt(last.AllocedBytesPerOp(), 10), strconv.FormatInt(last.AllocsPerOp(), 10))
			}
			row(w, cells)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// row writes a row, its first cell aligned on the left.
func row(w io.Writer, cells []string) {
	fmt.Fprintf(w, "%-48s\t%s\t\n", cells[0], strings.Join(cells[1:], "\t"))
}

// number shows at least three digits.
func number(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}
