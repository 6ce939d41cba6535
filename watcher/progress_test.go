package watcher

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestProgressSaysWhatIsKnown(t *testing.T) {
	began := time.Now()
	for name, test := range map[string]struct {
		progress Progress
		after    time.Duration
		rate     float64
		left     time.Duration
		said     string
	}{
		"none":                  {Progress{}, time.Hour, 0, 0, ""},
		"nothing came":          {Progress{Since: began}, 3 * time.Second, 0, 0, "0 objects so far"},
		"nothing came of a few": {Progress{Since: began, Total: 7}, 3 * time.Second, 0, 0, "0 of about 7 objects"},
		"no total":              {Progress{Since: began, Objects: 30}, 3 * time.Second, 10, 0, "30 objects so far"},
		"under way":             {Progress{Since: began, Objects: 30, Total: 100}, 3 * time.Second, 10, 7 * time.Second, "30 of about 100 objects, 7s left"},
		"nearly there":          {Progress{Since: began, Objects: 96, Total: 100}, time.Second * 48 / 5, 10, 400 * time.Millisecond, "96 of about 100 objects"},
		"all there":             {Progress{Since: began, Objects: 9, Total: 9}, 3 * time.Second, 3, 0, "9 of about 9 objects"},
		"more than there were":  {Progress{Since: began, Objects: 9, Total: 8}, 3 * time.Second, 3, 0, "9 objects so far"},
		"at once":               {Progress{Since: began, Objects: 9, Total: 10}, 0, 0, 0, "9 of about 10 objects"},
		"longer than anything":  {Progress{Since: began, Objects: 1, Total: math.MaxInt64}, time.Hour, 1. / 3600, 0, "1 of about 9223372036854775807 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			p := test.progress.at(began.Add(test.after))
			assert.InDelta(t, test.rate, p.Rate, 1e-9)
			assert.Equal(t, test.left, p.Left.Round(time.Microsecond))
			assert.Equal(t, test.said, p.String())
		})
	}
}
