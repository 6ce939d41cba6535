package watcher

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// C7: the age of a moment counts on both clocks, whichever says more.
func TestC7Age(t *testing.T) {
	moment := time.Now()
	for name, tc := range map[string]struct{ mono, wall, want time.Duration }{
		"both agree":                       {5 * time.Second, 5 * time.Second, 5 * time.Second},
		"suspended: the monotonic stopped": {time.Second, time.Hour, time.Hour},
		"wall clock set ahead":             {5 * time.Second, 3 * time.Hour, 3 * time.Hour},
		"wall clock set back":              {5 * time.Second, -3 * time.Hour, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			now := shiftWall(moment.Add(tc.mono), tc.wall-tc.mono)
			assert.Equal(t, tc.mono, now.Sub(moment), "the monotonic clock")
			assert.Equal(t, tc.wall, now.Round(0).Sub(moment.Round(0)), "the wall clock")
			assert.Equal(t, tc.want, Age(moment, now))
		})
	}
}

// shiftWall moves the wall clock reading of a time, and leaves its monotonic one:
// what a clock that is set, or a machine that sleeps, does to time.Now.
func shiftWall(t time.Time, d time.Duration) time.Time {
	// package time: with a monotonic reading, wall holds a flag, 33 bits of seconds
	// and 30 bits of nanoseconds.
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(int64(d/time.Second)) << 30
	return t
}
