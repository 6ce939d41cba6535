// Webhook is a validating admission webhook server that decides from a store: it
// refuses changes of ConfigMaps in namespaces with the label frozen=true. What it
// does not know for certain it does not decide.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/debug"
	"github.com/kube-safestore/kube-safestore/safestore/health"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// options are the flags.
type options struct {
	kubeconfig, address, debug, cert, key string
	bound, grace, limit                   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE` with the access to the cluster; empty inside of one")
	flag.StringVar(&o.address, "address", ":8443", "where to serve /validate, /readyz and /livez")
	flag.StringVar(&o.debug, "debug", "localhost:6060", "where to serve /debug/safestore: not for strangers")
	flag.StringVar(&o.cert, "tls-cert", "tls.crt", "`FILE` with the certificate")
	flag.StringVar(&o.key, "tls-key", "tls.key", "`FILE` with its key")
	flag.DurationVar(&o.bound, "max-staleness", 30*time.Second, "how old what is decided from may be")
	flag.DurationVar(&o.grace, "grace", 30*time.Second, "how long /readyz stays 200 when the store is not ready any more")
	flag.DurationVar(&o.limit, "limit", 15*time.Minute, "how long /livez stays 200 then")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespaces, err := safestore.New[*corev1.Namespace](watcher.ListWatch(client.CoreV1().Namespaces()), safestore.Options{
		Name: "namespaces", MaxStaleness: o.bound,
	})
	if err != nil {
		return err
	}

	ready, live := health.Ready(o.grace, namespaces), health.Live(o.limit, namespaces)
	mux, inside := http.NewServeMux(), http.NewServeMux()
	mux.Handle("POST /validate", &validator{namespaces})
	mux.Handle("/readyz", ready)
	mux.Handle("/readyz/{check...}", ready)
	mux.Handle("/livez", live)
	inside.Handle("/debug/safestore", debug.Handler(namespaces))

	// The store outlives the servers, so that requests that are under way when the
	// program is told to end are answered.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan error, 1)
	go func() { stopped <- namespaces.Run(life) }()
	err = serve(ctx, server{o.address, mux, o.cert, o.key}, server{address: o.debug, handler: inside})
	end()
	return errors.Join(err, <-stopped)
}
