package faults

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
	chaosTime = flag.Duration("chaos", 60*time.Second, "how long the chaos goes on")
	chaosSeed = flag.Uint64("seed", 0, "seed of the chaos; 0 chooses one and prints it")
)

// ofToxiproxy are goroutines that toxiproxy 2.5.0 leaves behind now and then, of
// connections that end while a toxic is added to them or taken away.
var ofToxiproxy = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"),
}

func TestMain(m *testing.M) {
	ServeIfAsked()
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(os.Stderr)
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "faults: stopping the cluster:", err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(ofToxiproxy...); err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			code = 1
		}
	}
	os.Exit(code)
}
