package faults

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brief are the options of the tests: SafeStore alone, with short windows.
var brief = Options{
	Window:     8 * time.Second,
	Bound:      3 * time.Second,
	MaxBackoff: time.Second,
	Brief:      true,
	Parallel:   8, // what faults do most is wait
	Progress:   os.Stderr,
}

var runner = NewRunner(brief)

func stopShared() error { return runner.Close() }

// SafeStore passes every fault of the matrix. What it is compared with in the
// matrix runs only there.
func TestSafeStorePassesEveryFault(t *testing.T) {
	var running sync.WaitGroup
	for _, f := range All() {
		running.Go(func() { t.Run(f.Name, func(t *testing.T) { testFault(t, f) }) }) // whatever -parallel says
	}
	running.Wait()
}

func testFault(t *testing.T, f Fault) {
	r := runner.Run(t.Context(), f)
	require.NoError(t, r.Err)
	require.Len(t, r.Verdicts, 1)
	var table bytes.Buffer
	require.NoError(t, WriteTable(&table, []Result{r}))
	t.Log("\n" + table.String())
	assert.Empty(t, r.Verdicts[0].Failures)
	assert.NotZero(t, r.Verdicts[0].Actions, "the controller never acted")
}

// Faults in a random sequence: a seed that fails is printed, and replays with
// -seed.
func TestChaos(t *testing.T) {
	f := Chaos(*chaosSeed, *chaosTime)
	t.Log(f.Name)
	testFault(t, f)
}
