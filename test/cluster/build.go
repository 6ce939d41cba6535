package cluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

const (
	apiServerPackage = "k8s.io/kubernetes/cmd/kube-apiserver"
	etcdPackage      = "go.etcd.io/etcd/server/v3"
)

// build builds the pinned programs into dir, which must not exist: first aside,
// so that dir is complete from its first moment.
func (p pins) build(ctx context.Context, dir string, progress io.Writer) error {
	begun := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(progress, "[%4.0fs] "+format+"\n", append([]any{time.Since(begun).Seconds()}, args...)...)
	}
	say("building kube-apiserver %s and etcd %s, once, into %s", p.kubernetes, p.etcd, dir)
	say("this takes 5 to 10 minutes; set KUBEBUILDER_ASSETS to use binaries that you have")

	aside, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)

	var downloads int
	packages, err := p.run(ctx, func(line string) {
		if strings.HasPrefix(line, "go: downloading") {
			if downloads++; downloads%50 == 1 {
				say("downloading modules: %d", downloads)
			}
		}
	}, "list", "-deps", "-trimpath", apiServerPackage, etcdPackage)
	if err != nil {
		return err
	}
	total := bytes.Count(packages, []byte("\n"))

	var compiled atomic.Int64
	stop := every(10*time.Second, func() {
		say("compiling: %d of at most %d packages", compiled.Load(), total)
	})
	defer stop()
	major, minor, _ := strings.Cut(strings.TrimPrefix(p.kubernetes, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const version = "k8s.io/component-base/version"
	_, err = p.run(ctx, func(string) { compiled.Add(1) },
		"build", "-v", "-trimpath", "-o", aside+string(filepath.Separator),
		fmt.Sprintf("-ldflags=-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
			version, p.kubernetes, major, minor),
		apiServerPackage, etcdPackage)
	if err != nil {
		return err
	}
	// The go command names a program after its import path, without the
	// version suffix.
	if err := os.Rename(filepath.Join(aside, "server"), filepath.Join(aside, "etcd")); err != nil {
		return err
	}
	if err := os.Chmod(aside, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // an incomplete one, or we were not called
		return err
	}
	if err := os.Rename(aside, dir); err != nil {
		return err
	}
	say("built")
	return nil
}

// run runs the go command in the module of the pins, calls onLine for each line
// it prints to its standard error, and returns its standard output. An error
// carries the last of those lines.
func (p pins) run(ctx context.Context, onLine func(string), args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// Let the go command end the compilers it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second

	var out bytes.Buffer
	cmd.Stdout = &out
	said := &tail{}
	read, write := io.Pipe()
	cmd.Stderr = io.MultiWriter(said, write)
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			onLine(scanner.Text())
		}
		_, _ = io.Copy(io.Discard, read) // whatever the scanner gave up on
	}()
	err := cmd.Run()
	_ = write.Close()
	<-lines
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], cause)
	}
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], p.module, err, said)
	}
	return out.Bytes(), nil
}

// every calls f once per interval until stop is called.
func every(interval time.Duration, f func()) (stop func()) {
	ticker := time.NewTicker(interval)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}
