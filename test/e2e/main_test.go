package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

var (
	soakTime = flag.Duration("soak", time.Minute, "how long the soak test goes on")
	soakSeed = flag.Uint64("seed", 0, "seed of the soak test; 0 chooses one and prints it")
)

// TestMain prints how long everything took, and checks that no goroutine is left
// of any store, client or proxy.
func TestMain(m *testing.M) {
	flag.Parse()
	klog.LogToStderr(false) // what client-go says about watches that are broken on purpose
	klog.SetOutput(testLog{})
	begun := time.Now()
	code := m.Run()
	if err := sharedCluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: stopping the cluster:", err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			code = 1
		}
	}
	fmt.Printf("e2e: took %v\n", time.Since(begun).Round(100*time.Millisecond))
	os.Exit(code)
}

// testLog shows what is logged outside of any test, if asked for.
type testLog struct{}

func (testLog) Write(p []byte) (int, error) {
	if testing.Verbose() {
		return os.Stderr.Write(p)
	}
	return len(p), nil
}
