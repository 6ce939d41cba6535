package faults

import (
	"encoding/json"
	"io"
)

// WriteJSON writes one line for each cell of the matrix. Durations are in
// nanoseconds. The line of a fault that could not be run has its name and an
// error.
func WriteJSON(w io.Writer, results []Result) error {
	type cell struct {
		Verdict
		Word string `json:"verdict"`
	}
	type failure struct {
		Fault string `json:"fault"`
		Error string `json:"notRun"`
	}
	lines := json.NewEncoder(w)
	for _, r := range results {
		for _, v := range r.Verdicts {
			if err := lines.Encode(cell{v, v.Word()}); err != nil {
				return err
			}
		}
		if r.Err != nil {
			if err := lines.Encode(failure{r.Fault.Name, r.Err.Error()}); err != nil {
				return err
			}
		}
	}
	return nil
}
