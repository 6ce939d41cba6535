package watcher

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDurationsBySize(t *testing.T) {
	var s stopwatch
	assert.Zero(t, s.read().Count())
	for _, d := range []time.Duration{0, 10 * time.Microsecond, 11 * time.Microsecond, time.Second, time.Second + 1, time.Hour} {
		s.add(d)
	}
	d := s.read()
	assert.EqualValues(t, 6, d.Count())
	assert.Equal(t, time.Hour+2*time.Second+21*time.Microsecond+1, d.Sum)
	assert.Equal(t, map[time.Duration]uint64{
		10 * time.Microsecond: 2, 100 * time.Microsecond: 3, time.Millisecond: 3,
		10 * time.Millisecond: 3, 100 * time.Millisecond: 3, time.Second: 4,
	}, maps.Collect(d.Buckets()))
	for bound := range d.Buckets() {
		assert.Equal(t, 10*time.Microsecond, bound, "ascending, and ended by who has seen enough")
		break
	}
}
