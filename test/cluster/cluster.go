package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// What a healthy machine needs is 2 to 10 seconds, see the tests. A busy one
// gets more.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	drainTimeout = 8 * time.Second // of an API server, before it is killed
)

// Options say how a cluster is started. The zero value works.
type Options struct {
	// Assets is the directory with kube-apiserver and etcd. Default: what
	// the function [Assets] finds or builds.
	Assets string

	// Progress is told what happens when it takes long. Default: nobody.
	Progress io.Writer

	// Output receives what the servers print. Default: their last lines are
	// kept, to explain a failure.
	Output io.Writer

	// APIServerArgs and EtcdArgs are the servers' flags beyond the defaults,
	// each as "--name=value".
	APIServerArgs, EtcdArgs []string
}

// Cluster is a running control plane.
type Cluster struct {
	// API is the API server that [Cluster.Config] points to.
	API *APIServer

	// Etcd is where all API servers of the cluster keep their objects.
	Etcd *Etcd

	dir    string
	binary string // kube-apiserver
	output io.Writer

	mu       sync.Mutex
	replicas []*APIServer
}

// Start starts etcd and an API server and returns when the API server is ready.
// If it fails, or ctx ends before, nothing is left behind. The caller must call
// [Cluster.Stop].
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Assets == "" {
		if o.Assets, err = Assets(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	if err := complete(o.Assets); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kube-safestore-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, binary: filepath.Join(o.Assets, "kube-apiserver"), output: o.Output}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if c.Etcd, err = newEtcd(dir, filepath.Join(o.Assets, "etcd"), o); err != nil {
		return nil, err
	}
	if c.API, err = newAPIServer(dir, "kube-apiserver", c.binary, c.Etcd, o); err != nil {
		return nil, err
	}
	if err := c.Etcd.Start(ctx); err != nil {
		return nil, err
	}
	return c, c.API.Start(ctx)
}

// StartReplica starts one more API server on the same etcd, with a port of its
// own and the same users. Its flags are the defaults and args, not those of
// [Options]. It ends with the cluster, or earlier by its own Stop.
func (c *Cluster) StartReplica(ctx context.Context, args ...string) (*APIServer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fmt.Sprintf("kube-apiserver-%d", len(c.replicas)+2)
	a, err := newAPIServer(c.dir, name, c.binary, c.Etcd, Options{APIServerArgs: args, Output: c.output})
	if err != nil {
		return nil, err
	}
	c.API.mu.Lock()
	a.serving = c.API.serving
	c.API.mu.Unlock()
	a.serving.Port = "" // let it choose
	c.replicas = append(c.replicas, a)
	return a, a.Start(ctx)
}

// Config returns the administrator's access to the cluster, without client-side
// rate limit. The caller owns it.
func (c *Cluster) Config() *rest.Config { return c.API.Config() }

// AddUser returns the access of a user that has no rights except what RBAC
// gives to its name and groups. It holds over restarts, and at every API server
// of the cluster once Host is set to that server's URL.
func (c *Cluster) AddUser(name string, groups ...string) (*rest.Config, error) {
	c.API.mu.Lock()
	defer c.API.mu.Unlock()
	return c.API.addUser(name, groups...)
}

// Stop ends the servers and removes everything the cluster wrote. The servers
// are killed, for nothing of them is needed any more. A second call does
// nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, a := range append(c.replicas, c.API) {
		if a != nil {
			errs = append(errs, a.Kill())
		}
	}
	if c.Etcd != nil {
		errs = append(errs, c.Etcd.Kill())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
