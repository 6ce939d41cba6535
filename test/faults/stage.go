package faults

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kube-safestore/kube-safestore/test/cluster"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
	"github.com/kube-safestore/kube-safestore/test/internal/gateway"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// Stage is where a fault happens: a cluster, a collection in it, the way of the
// caches to the server, and the caches. What belongs to the truth does not take
// that way.
type Stage struct {
	// Where it is, and how it is reached past everything that the fault breaks.
	Cluster   *cluster.Cluster
	Admin     kubernetes.Interface
	Dynamic   dynamic.Interface
	Etcd      *clientv3.Client
	Namespace string

	// What is cached: ConfigMaps if Prepare does not change it. Prefix is where etcd
	// has it, and Encode makes what is stored there.
	Resource   schema.GroupVersionResource
	ObjectKind string
	Prefix     string
	Encode     func(metav1.ObjectMeta) ([]byte, error)

	// Config is how the caches reach the server: by the Gateway, if Prepare does not
	// change it.
	Config  *rest.Config
	Gateway *gateway.Gateway

	// Truth and Writer are there after Prepare, Processes when the caches have been
	// started.
	Truth     *truth.Record
	Writer    *truth.Writer
	Processes []*system.Process

	// Window is how long the fault lasts. Brief says that it is one of the short
	// windows of the end-to-end tests: what is large may be smaller.
	Window time.Duration
	Brief  bool
	// Log takes down what happens when.
	Log func(format string, args ...any)

	begun, over time.Time
	mu          sync.Mutex
	cleanups    []func() error
}

// newStage makes a namespace in the cluster, and clients.
func newStage(ctx context.Context, c *cluster.Cluster) (s *Stage, err error) {
	s = &Stage{Cluster: c, Resource: subject.ConfigMaps, ObjectKind: "ConfigMap"}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	config := c.Config()
	config.Dial = (&net.Dialer{}).DialContext // connections of its own
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return s, err
	}
	s.Defer(func() error { utilnet.CloseIdleConnectionsFor(httpClient.Transport); return nil })
	if s.Admin, err = kubernetes.NewForConfigAndClient(config, httpClient); err != nil {
		return s, err
	}
	if s.Dynamic, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return s, err
	}
	if s.Etcd, err = c.Etcd.Client(); err != nil {
		return s, err
	}
	s.Defer(s.Etcd.Close)
	namespace, err := s.Admin.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}, metav1.CreateOptions{})
	if err != nil {
		return s, err
	}
	s.Namespace = namespace.Name
	s.Prefix = "/registry/configmaps/" + s.Namespace + "/"
	s.Encode = s.encodeConfigMap
	return s, nil
}

// encodeConfigMap makes what etcd stores of a ConfigMap.
func (s *Stage) encodeConfigMap(m metav1.ObjectMeta) ([]byte, error) {
	m.Namespace = s.Namespace
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	encoder := scheme.Codecs.EncoderForVersion(serializer, corev1.SchemeGroupVersion)
	return runtime.Encode(encoder, &corev1.ConfigMap{ObjectMeta: m})
}

// Defer has f called when the fault is over and the caches have ended, the last
// one first.
func (s *Stage) Defer(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// close does what was deferred.
func (s *Stage) close() error {
	var errs []error
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		errs = append(errs, s.cleanups[i]())
	}
	s.cleanups = nil
	return errors.Join(errs...)
}

// ThroughGateway lets the caches reach a server through a gateway, where it can
// be decided about every request and every stream.
func (s *Stage) ThroughGateway(server *rest.Config) error {
	g, err := gateway.Start(server)
	if err != nil {
		return err
	}
	s.Defer(func() error { g.Close(); return nil })
	s.Gateway, s.Config = g, g.Config()
	return nil
}

// Hold lets the window pass.
func (s *Stage) Hold(ctx context.Context) error { return Pass(ctx, s.Window) }

// Pass lets time go by.
func Pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Every calls f at each interval until the window has passed.
func (s *Stage) Every(ctx context.Context, interval time.Duration, f func() error) error {
	for end := time.Now().Add(s.Window); time.Now().Before(end); {
		if err := f(); err != nil {
			return err
		}
		if err := Pass(ctx, interval); err != nil {
			return err
		}
	}
	return nil
}

// address returns the address that an API server listens at.
func address(a *cluster.APIServer) (string, error) {
	if !strings.Contains(a.URL(), "://") {
		return a.URL(), nil
	}
	u, err := url.Parse(a.URL())
	if err != nil {
		return "", err
	}
	return u.Host, nil
}

// setup returns what a process of that kind is told.
func (s *Stage) setup(kind system.Kind, f Fault, o Options) system.Setup {
	setup := system.Setup{
		Kind: kind, Resource: s.Resource, ObjectKind: s.ObjectKind, Namespace: s.Namespace,
		Bound: o.Bound, MaxBackoff: o.MaxBackoff, Interval: f.Interval,
	}
	if setup.Interval == 0 {
		setup.Interval = 20 * time.Millisecond
	}
	setup.Access(s.Config)
	return setup
}
