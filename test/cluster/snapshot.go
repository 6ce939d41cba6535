package cluster

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// snapshots is where snapshots are kept, beside the data directory.
const snapshots = "-snapshots"

// EtcdSnapshot is a copy of etcd's data at one moment.
type EtcdSnapshot struct{ dir string }

// Snapshot copies the data as it is now. Nobody is disconnected: the server is
// suspended for the copy, less than a second, so that the copy is what a
// crash at that moment would have left on the disk.
func (e *Etcd) Snapshot() (snapshot EtcdSnapshot, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	copied, err := os.MkdirTemp(e.dir+snapshots, "")
	if err != nil {
		return EtcdSnapshot{}, err
	}
	snapshot.dir = copied
	if e.server != nil {
		if err := e.launcher.signal(syscall.SIGSTOP); err != nil {
			return EtcdSnapshot{}, err
		}
		defer func() {
			if resumeErr := e.launcher.signal(syscall.SIGCONT); err == nil {
				err = resumeErr
			}
		}()
		// A thread in the middle of a write stops when the write is done.
		time.Sleep(20 * time.Millisecond)
	}
	return snapshot, os.CopyFS(snapshot.dir, os.DirFS(e.dir))
}

// Restore puts the data back to what it was at the snapshot and starts the
// server. Revisions go back with it, and are then given out a second time: the
// rewind that clients must find. It is the recovery of a real cluster only if
// the API servers are stopped meanwhile, as etcd's documentation asks:
//
//	c.API.Stop(), c.Etcd.Restore(ctx, snapshot), c.API.Start(ctx)
//
// An API server that runs on keeps serving from its watch cache what etcd no
// longer holds. A snapshot can be restored any number of times.
func (e *Etcd) Restore(ctx context.Context, snapshot EtcdSnapshot) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.stopLocked(); err != nil {
		return err
	}
	if err := os.RemoveAll(e.dir); err != nil {
		return err
	}
	if err := os.CopyFS(e.dir, os.DirFS(snapshot.dir)); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	// etcd refuses a directory that others may enter.
	if err := os.Chmod(e.dir, 0o700); err != nil {
		return err
	}
	return e.startLocked(ctx)
}
