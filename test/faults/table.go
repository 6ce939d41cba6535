package faults

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the matrix for people.
func WriteTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tSYSTEM\tVERDICT\tWRONG\tFOR\tOLDEST\tTOLD AFTER\tWHY\tUNREADY\tRIGHT AFTER\tREQUESTS\tRELISTS\tHEAP\tLEFT")
	for _, r := range results {
		for _, v := range r.Verdicts {
			fmt.Fprintln(t, strings.Join(append([]string{v.Fault, string(v.System), v.Word()}, v.Cells()...), "\t"))
		}
		if r.Err != nil {
			fmt.Fprintf(t, "%s\t\tnot run: %v\n", r.Fault.Name, r.Err)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, v := range r.Verdicts {
			for _, failure := range v.Failures {
				if _, err := fmt.Fprintf(w, "\n%s, %s: %s", v.Fault, v.System, failure); err != nil {
					return err
				}
			}
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// Word is the verdict in one word.
func (v Verdict) Word() string {
	switch {
	case v.Died != "":
		return "DIED"
	case len(v.Failures) > 0:
		return "FAILED"
	case v.Wrong > 0:
		return "wrong"
	case !v.Recovered:
		return "not right again"
	case v.Unready > 0 && !v.Meanwhile && v.Waits:
		return "not ready meanwhile"
	default:
		return "right"
	}
}

// Cells are the numbers of a row.
func (v Verdict) Cells() []string {
	told, right := "never", "never"
	if v.Told {
		told = seconds(v.TellsAfter)
	}
	if v.Recovered {
		right = seconds(v.RecoversAfter)
	}
	return []string{
		fmt.Sprint(v.Wrong), seconds(v.WrongFor), seconds(v.Oldest), told, strings.Join(v.Reasons, " "), seconds(v.Unready), right,
		fmt.Sprint(v.Requests), fmt.Sprint(v.Relists), megabytes(v.Left.Heap), fmt.Sprintf("%d, %s", v.Left.Goroutines, megabytes(v.Left.HeapLeft)),
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

func megabytes(n int64) string { return fmt.Sprintf("%.1fM", float64(n)/(1<<20)) }
