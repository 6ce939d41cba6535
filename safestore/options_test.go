package safestore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// What makes no sense is refused by name.
func TestOptionsAreValidated(t *testing.T) {
	for want, opts := range map[string]Options{
		"safestore: MaxObjects is negative: -1":        {MaxObjects: -1},
		"safestore: MaxBytes is negative: -1":          {MaxBytes: -1},
		"safestore: MaxStaleness is under 2s: 1s":      {MaxStaleness: time.Second},
		"safestore: Watch.MaxSilence is negative: -1s": {Watch: watcher.Options{MaxSilence: -time.Second}},
		"safestore: MaxStaleness and Watch.MaxStaleness are both set, and differ": {
			MaxStaleness: time.Minute, Watch: watcher.Options{MaxStaleness: time.Hour}},
	} {
		_, err := New[*Map](sourceOf(mapList("1")), opts)
		assert.EqualError(t, err, want)
	}
	_, err := New[*Map](sourceOf(mapList("1")), Options{MaxObjects: 1, MaxBytes: 1, Lenient: true})
	assert.NoError(t, err)
}
