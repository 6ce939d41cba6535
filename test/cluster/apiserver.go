package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// apiServerDefaults are set beyond what envtest sets.
var apiServerDefaults = []string{
	// Tests compact, see Etcd.Compact.
	"--etcd-compaction-interval=0",
	// Nobody looks up the API server's own endpoints, and removing them
	// makes every stop slower.
	"--endpoint-reconciler-type=none",
	// Without it, a stop waits a minute for watches, which do not end.
	"--shutdown-watch-termination-grace-period=1s",
}

// APIServer is one kube-apiserver. It keeps its port, its certificates and its
// users over restarts.
type APIServer struct {
	// Args are flags beyond the defaults, each as "--name=value". They are
	// read when the server starts.
	Args []string

	etcd     *Etcd
	dir      string // certificates, shared by the servers of a cluster
	launcher *launcher
	log      *tail

	mu      sync.Mutex
	server  *envtest.APIServer    // nil while stopped
	serving envtest.SecureServing // address, certificate authority, users; from the first start on
	admin   *rest.Config
}

func newAPIServer(dir, name, binary string, etcd *Etcd, o Options) (*APIServer, error) {
	l, err := newLauncher(dir, name, binary)
	if err != nil {
		return nil, err
	}
	a := &APIServer{
		Args:     o.APIServerArgs,
		etcd:     etcd,
		dir:      filepath.Join(dir, "certificates"),
		launcher: l,
		log:      &tail{next: o.Output},
	}
	return a, os.MkdirAll(a.dir, 0o700)
}

// Start starts the server and returns when it is ready to serve. If it runs
// already, nothing happens. Versions from before the start are unknown to the
// new server's watch cache: a watch from one of them is answered with 410
// unless nothing was written since.
func (a *APIServer) Start(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		return nil
	}
	server := &envtest.APIServer{
		Path:          a.launcher.path,
		CertDir:       a.dir,
		EtcdURL:       a.etcd.address,
		SecureServing: a.serving,
		StartTimeout:  startTimeout,
		StopTimeout:   drainTimeout,
		Out:           a.log,
		Err:           a.log,
	}
	for _, flags := range [][]string{apiServerDefaults, a.Args} {
		if err := configure(server.Configure(), flags); err != nil {
			return err
		}
	}
	err := a.launcher.start(ctx, server.Start)
	if err == nil {
		a.serving = server.SecureServing
		if a.admin == nil {
			a.admin, err = a.addUser("admin", "system:masters")
		}
	}
	if err == nil {
		err = waitOK(ctx, a.admin, "/readyz", "/api/v1/namespaces/default")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start kube-apiserver: %w; its last output:\n%s", err, a.log), a.launcher.kill())
	}
	a.server = server
	return nil
}

// Stop ends the server in good order: it stops accepting requests and closes
// its watches. Clients that connect while it does so can keep it from ending:
// then it is killed.
func (a *APIServer) Stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server == nil {
		return nil
	}
	_ = a.server.Stop()
	a.server = nil
	return a.launcher.kill()
}

// Restart is Stop and Start.
func (a *APIServer) Restart(ctx context.Context) error {
	if err := a.Stop(); err != nil {
		return err
	}
	return a.Start(ctx)
}

// Kill ends the server at once, as a crash would: clients see their connections
// break.
func (a *APIServer) Kill() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = nil
	return a.launcher.kill()
}

// Signal sends sig to the server: SIGSTOP and SIGCONT make a server that hangs.
func (a *APIServer) Signal(sig syscall.Signal) error {
	return a.launcher.signal(sig)
}

// Config returns the administrator's access to this server, without client-side
// rate limit. The caller owns it.
func (a *APIServer) Config() *rest.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return rest.CopyConfig(a.admin)
}

// URL returns where the server listens, the same over restarts.
func (a *APIServer) URL() string { return a.Config().Host }

// Logs returns the last lines of the server's output.
func (a *APIServer) Logs() string { return a.log.String() }

// addUser returns the access of a user with a client certificate of its own.
// The lock is held, or the server is not shared yet.
func (a *APIServer) addUser(name string, groups ...string) (*rest.Config, error) {
	return a.serving.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{
		Host:            a.serving.URL("https", "").String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: a.serving.CA},
		QPS:             -1, // no limit
	})
}
