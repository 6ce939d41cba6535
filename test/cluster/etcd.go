package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Etcd is the cluster's etcd. It keeps its address and its data over restarts.
type Etcd struct {
	// Args are flags beyond the defaults, each as "--name=value". They are
	// read when the server starts.
	Args []string

	dir      string
	launcher *launcher
	log      *tail

	mu      sync.Mutex
	server  *envtest.Etcd // nil while stopped
	address *url.URL      // chosen at the first start
}

func newEtcd(dir, binary string, o Options) (*Etcd, error) {
	l, err := newLauncher(dir, "etcd", binary)
	if err != nil {
		return nil, err
	}
	e := &Etcd{
		Args:     o.EtcdArgs,
		dir:      filepath.Join(dir, "etcd-data"),
		launcher: l,
		log:      &tail{next: o.Output},
	}
	return e, errors.Join(os.MkdirAll(e.dir, 0o700), os.MkdirAll(e.dir+snapshots, 0o700))
}

// Start starts the server and returns when it is healthy. If it runs already,
// nothing happens.
func (e *Etcd) Start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.startLocked(ctx)
}

func (e *Etcd) startLocked(ctx context.Context) error {
	if e.server != nil {
		return nil
	}
	server := &envtest.Etcd{
		URL:          e.address,
		Path:         e.launcher.path,
		DataDir:      e.dir,
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
		Out:          e.log,
		Err:          e.log,
	}
	if err := configure(server.Configure(), e.Args); err != nil {
		return err
	}
	if err := e.launcher.start(ctx, server.Start); err != nil {
		return fmt.Errorf("start etcd: %w; its last output:\n%s", err, e.log)
	}
	e.server = server
	if e.address == nil {
		e.address = server.URL
	}
	return nil
}

// Stop ends the server in good order, for which it takes some 8 seconds while
// API servers are connected. They keep running, and answer what they can without
// it.
func (e *Etcd) Stop() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopLocked()
}

func (e *Etcd) stopLocked() error {
	if e.server == nil {
		return nil
	}
	err := e.server.Stop()
	e.server = nil
	return errors.Join(stopped(err), e.launcher.kill())
}

// Kill ends the server at once, as a crash would. What was committed is kept.
func (e *Etcd) Kill() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server = nil
	return e.launcher.kill()
}

// Signal sends sig to the server: SIGSTOP and SIGCONT make a server that hangs.
func (e *Etcd) Signal(sig syscall.Signal) error {
	return e.launcher.signal(sig)
}

// Endpoint returns the URL at which the server listens, the same over restarts.
func (e *Etcd) Endpoint() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.address.String()
}

// Dir returns the path of the data directory.
func (e *Etcd) Dir() string { return e.dir }

// Logs returns the last lines of the server's output.
func (e *Etcd) Logs() string { return e.log.String() }

// Client returns a client of the server, for what the Kubernetes API does not
// let a test do. The caller closes it. Kubernetes objects are under /registry.
func (e *Etcd) Client() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{e.Endpoint()},
		Logger:    zap.NewNop(),
	})
}

// Compact throws away the history up to the current revision, as the API server
// does every five minutes in a real cluster, and returns that revision. What an
// API server holds in its watch cache it still serves: a watch from an older
// version fails with 410 once that server has restarted, or at a server without
// watch cache.
func (e *Etcd) Compact(ctx context.Context) (revision int64, err error) {
	client, err := e.Client()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	now, err := client.Get(ctx, "/")
	if err != nil {
		return 0, err
	}
	revision = now.Header.Revision
	_, err = client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	return revision, err
}
