package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// C42: a relist that brings nothing new needs under a third of what the store
// holds, in addition. That is memory which is reachable, and no matter of time.
func TestC42RelistNeedsLittleMemory(t *testing.T) {
	once(t)
	operation := newSuite(t, 10_000).relistHeap()
	result, err := operation.Contenders[0].Measure()
	require.NoError(t, err)
	assert.Less(t, Value(result, heapToSteady), 1.3)
}
