package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// suspendable is in the environment of the process that [TestSuspended] suspends.
const suspendable = "SAFESTORE_E2E_SUSPENDABLE"

// suspendableSetup is what that process is told.
type suspendableSetup struct {
	Host          string
	CA, Cert, Key []byte
	Counter       types.NamespacedName
	Bound         time.Duration
}

// suspendableRead is a read that it made: one line of JSON on its output.
type suspendableRead struct {
	At         time.Time           // when it began
	Value      int                 // of the counter
	Generation uint64              // zero if the read failed
	Reason     invalidation.Reason // why the store was not ready any more
	Error      string
}

// A process is stopped and continued. The first read after that fails, before any
// timer had a chance, and the store is ready again in seconds (C7).
func TestSuspended(t *testing.T) {
	t.Parallel()
	e := share(t)
	c := e.count(t, e.namespace(t))
	config := e.Config()
	const bound = 3 * time.Second
	setup, err := json.Marshal(suspendableSetup{
		Host: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData, Counter: c.key, Bound: bound,
	})
	require.NoError(t, err)
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuspendable$")
	process.Env = append(os.Environ(), suspendable+"="+string(setup))
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	reads := make(chan suspendableRead, 100_000)
	go func() {
		defer close(reads)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r suspendableRead
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				reads <- r
			}
		}
	}()
	// next returns the first read that is as wanted, and checks all before it.
	next := func(what string, wanted func(suspendableRead) bool) suspendableRead {
		t.Helper()
		for patience := time.After(patience); ; {
			select {
			case r, ok := <-reads:
				require.True(t, ok, "the process has ended")
				if r.Generation > 0 {
					assert.GreaterOrEqual(t, r.Value, c.at(r.At.Add(-bound)), "%v", r)
				}
				if wanted(r) {
					return r
				}
			case <-patience:
				require.FailNow(t, "waiting for "+what)
			}
		}
	}
	succeeded := func(r suspendableRead) bool { return r.Generation > 0 }

	next("the store to be ready", succeeded)
	pass(t, time.Second)
	require.NoError(t, process.Process.Signal(syscall.SIGSTOP))
	pass(t, 6*time.Second)
	continued := time.Now()
	require.NoError(t, process.Process.Signal(syscall.SIGCONT))
	first := next("the first read", func(r suspendableRead) bool { return !r.At.Before(continued) })
	assert.Equal(t, invalidation.Stale, first.Reason, "%+v", first)
	healed := next("the store to be ready again", func(r suspendableRead) bool { return succeeded(r) && r.At.After(continued) })
	assert.Equal(t, uint64(2), healed.Generation)
	took := healed.At.Sub(continued)
	t.Logf("first read %v after SIGCONT: %s; ready again %v after it", round(first.At.Sub(continued)), first.Error, round(took))
	assert.Less(t, took, healing)
	end := time.Now().Add(2 * time.Second)
	next("more reads", func(r suspendableRead) bool { return r.At.After(end) })
}

// TestSuspendable is the process that is suspended, and no test of its own: it
// reads in a loop until it is killed.
func TestSuspendable(t *testing.T) {
	value := os.Getenv(suspendable)
	if value == "" {
		t.Skip("started by TestSuspended")
	}
	var setup suspendableSetup
	require.NoError(t, json.Unmarshal([]byte(value), &setup))
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host:            setup.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: setup.CA, CertData: setup.Cert, KeyData: setup.Key},
	})
	require.NoError(t, err)
	store, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(client.CoreV1().ConfigMaps(setup.Counter.Namespace)), within(setup.Bound))
	require.NoError(t, err)
	go func() { _ = store.Run(context.WithoutCancel(t.Context())) }()
	for out := json.NewEncoder(os.Stdout); ; time.Sleep(5 * time.Millisecond) {
		r := suspendableRead{At: time.Now()}
		snapshot, err := store.Snapshot()
		if err == nil {
			var counter *corev1.ConfigMap
			if counter, err = snapshot.Get(setup.Counter); err == nil {
				r.Generation = snapshot.Token().Generation()
				r.Value, err = strconv.Atoi(counter.Annotations[subject.ValueAnnotation])
			}
		}
		if err != nil {
			r.Error = err.Error()
			var revocation *invalidation.Revocation
			if errors.As(err, &revocation) {
				r.Reason = revocation.Reason
			}
		}
		if err := out.Encode(r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
}
