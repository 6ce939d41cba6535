package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// launcher stands between envtest and a server's binary, for two things that
// envtest keeps to itself or does not do: the process id, without which a
// server cannot be killed or suspended, and a server that ends with us.
type launcher struct {
	path    string // the script that envtest starts
	pidFile string
}

// script becomes the server by exec, so that its process id is the server's.
// The loop beside it belongs to the same process group, so that it ends with
// any signal sent to the group, as envtest and [launcher.signal] do.
const script = `#!/bin/sh
[ "$1" = --help ] && exec %[1]q "$@"
parent=$PPID
(
	while kill -0 $parent; do
		kill -0 $$ || exit
		sleep 1
	done
	kill -KILL $$
) </dev/null >/dev/null 2>&1 &
echo $$ >%[2]q
exec %[1]q "$@"
`

// newLauncher writes the launcher of binary into dir, under the given name.
func newLauncher(dir, name, binary string) (*launcher, error) {
	l := &launcher{
		path:    filepath.Join(dir, name),
		pidFile: filepath.Join(dir, name+".pid"),
	}
	return l, os.WriteFile(l.path, fmt.Appendf(nil, script, binary, l.pidFile), 0o755)
}

// pid returns the id of the process started last.
func (l *launcher) pid() (int, error) {
	b, err := os.ReadFile(l.pidFile)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// signal sends sig to the process started last and to the loop beside it.
func (l *launcher) signal(sig syscall.Signal) error {
	pid, err := l.pid()
	if err != nil {
		return err
	}
	return syscall.Kill(-pid, sig)
}

// kill ends the process started last, if it still runs, and returns when it is
// gone.
func (l *launcher) kill() error {
	pid, err := l.pid()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	// The process is our child, and envtest waits for it: its id is free as
	// soon as that wait has returned.
	for range 1000 {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return os.Remove(l.pidFile)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("process %d does not end", pid)
}

// start runs envtest's start of the server, which knows no context: if ctx ends
// meanwhile, the process is killed. If it fails, no process is left.
func (l *launcher) start(ctx context.Context, start func() error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.signal(syscall.SIGKILL) })
	err := start()
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return errors.Join(err, l.kill())
	}
	return nil
}

// configure adds flags, each as "--name=value".
func configure(arguments *envtest.Arguments, flags []string) error {
	for _, flag := range flags {
		name, value, ok := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !ok || !strings.HasPrefix(flag, "--") {
			return fmt.Errorf("flag %q is not of the form --name=value", flag)
		}
		arguments.Append(name, value)
	}
	return nil
}

// stopped drops the error of a process that had ended before it was stopped.
func stopped(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
