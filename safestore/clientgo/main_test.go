package clientgo_test

import (
	"io"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false) // what client-go's listers say when an index answers with an error
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}
