package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// asked is where a process finds its setup.
const asked = "SAFESTORE_FAULTS_SYSTEM"

// What a process is told on its input, one word a line, besides how its
// consumers are to behave.
const stop = "stop"

// ServeIfAsked runs a cache, and does not return, if this process is one that
// [Start] has started.
func ServeIfAsked() {
	value := os.Getenv(asked)
	if value == "" {
		return
	}
	var setup Setup
	err := json.Unmarshal([]byte(value), &setup)
	if err == nil {
		err = serve(&setup, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a cache and reads it until it is told to stop, or nobody is there
// any more to tell it.
func serve(setup *Setup, in io.Reader, out io.Writer) error {
	klog.LogToStderr(false) // what client-go says about a server that is broken on purpose
	klog.SetOutput(io.Discard)
	told := make(chan string)
	go func() {
		defer close(told)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			told <- lines.Text()
		}
	}()
	before := alive()
	goroutines := runtime.NumGoroutine()

	requests, says := &counter{}, &writer{out: json.NewEncoder(out)}
	left, err := observe(setup, requests, told, says)
	if err != nil {
		return err
	}
	left.Heap -= before
	left.Goroutines, left.Stacks = settle(goroutines, requests.reconnect)
	left.HeapLeft = alive() - before
	return says.write(line{Left: left})
}

// writer writes lines, from any goroutine.
type writer struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (w *writer) write(l line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(l)
}

// observe runs a cache and reads it until it is told to stop.
func observe(setup *Setup, requests *counter, told <-chan string, says *writer) (*Left, error) {
	consumer := &consumer{act: func(s Sample) { _ = says.write(line{Action: &s}) }} // read fails the same way
	cache, err := newCache(setup, setup.config(requests), requests, consumer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- cache.run(ctx) }()
	pace := time.NewTicker(setup.Interval)
	defer pace.Stop()
	last := ""
	for {
		select {
		case <-pace.C:
			s := Sample{At: time.Now().UnixNano()}
			cache.read(&s)
			s.Requests, s.Sets = int(requests.requests.Load()), int(requests.sets.Load())
			if s.Error == last {
				s.Error = ""
			} else {
				last = s.Error
			}
			if err := says.write(line{Sample: &s}); err != nil {
				return nil, err
			}
		case how, ok := <-told:
			if ok && how != stop {
				consumer.behave(how)
				cache.stir()
				continue
			}
			left := &Left{Heap: alive()}
			consumer.behave(Well)
			cancel()
			select {
			case err := <-ended:
				return left, err
			case <-time.After(10 * time.Second):
				return nil, errors.New("the cache does not end")
			}
		case err := <-ended:
			return nil, fmt.Errorf("the cache has ended by itself: %w", err)
		}
	}
}

// alive returns what is alive of the heap.
func alive() int64 {
	runtime.GC()
	runtime.GC() // for what only finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// settle waits for goroutines to end, closing connections as they become idle, and
// returns how many are left beyond those that there were, with their stacks.
func settle(before int, closeIdle func()) (left int, stacks string) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for patience := time.After(5 * time.Second); ; {
		closeIdle()
		if left = runtime.NumGoroutine() - before; left <= 0 {
			return 0, ""
		}
		select {
		case <-again.C:
		case <-patience:
			var b strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
			return left, b.String()
		}
	}
}
