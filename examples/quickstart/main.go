// Quickstart shows what SafeStore is for, on a real Kubernetes API server and in
// under a minute. Read steps.go for how a store is used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

const intro = `SafeStore quickstart: a cache that says when it cannot be trusted.

A store holds the ConfigMaps of one namespace; watch the one that is called "settings". A client-go informer of the
same objects runs beside it. Each line shows the seconds since the start, the generation and the state of the store's
token at that moment, and what happens.
`

const usage = `Usage: quickstart [-kubeconfig FILE] [-logs]

Shows a SafeStore at work, as a timeline: a read that waits, ready, a write that becomes visible, revoked because the
watch expired, ready again, revoked because a right was withdrawn, ready again; and a store with a bound that finds out
about a watch that brings nothing.

It runs on a kube-apiserver and an etcd of its own, on localhost, and removes them again. Their binaries are those in
the directory KUBEBUILDER_ASSETS; if that is not set they are built, which takes minutes, once.

`

const afterFlags = `
No cluster is used that was not named: KUBECONFIG and a pod's service account are ignored. NO_COLOR is honoured.
Exit codes: 0 all of it happened, 1 a step failed or took too long, 2 wrong flags, 130 interrupted.
`

func main() {
	flags := flag.NewFlagSet("quickstart", flag.ExitOnError) // of its own: packages put theirs into the common one
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
		fmt.Fprint(flags.Output(), afterFlags)
	}
	d := &demo{serverLogs: os.Stderr}
	flags.StringVar(&d.kubeconfig, "kubeconfig", "", "use the cluster in this `FILE`, in a namespace made for it and deleted afterwards: nothing is restarted,\n"+
		"and no right is withdrawn where you may not impersonate a user and grant it one")
	logs := flags.Bool("logs", false, "show what client-go, the store and the servers log, on standard error")
	_ = flags.Parse(os.Args[1:]) // it exits
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q\n", flags.Arg(0))
		flags.Usage()
		os.Exit(2)
	}
	if !*logs {
		d.serverLogs = io.Discard
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
		rest.SetDefaultWarningHandler(rest.NoWarnings{})
	}

	// The first signal ends the demo in good order, a second one at once. A reader
	// of the output who leaves early ends nothing: there is still to be cleaned up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	signal.Ignore(syscall.SIGPIPE)
	switch err := run(ctx, d); {
	case err == nil:
		fmt.Println(d.summary())
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "\nINTERRUPTED: %v\n", err)
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "\nFAILED: %v\n", err)
		os.Exit(1)
	}
}

// run performs all steps and cleans up after them.
func run(ctx context.Context, d *demo) (err error) {
	fmt.Print(intro, "\n")
	if d.kubeconfig == "" {
		if d.assets, err = cluster.Assets(ctx, os.Stdout); err != nil {
			return err
		}
	}
	var cancel context.CancelFunc
	d.life, cancel = context.WithCancel(ctx)
	defer func() {
		cancel()
		err = errors.Join(err, d.cleanUp())
	}()
	d.timeline = newTimeline(os.Stdout, term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "")
	for number, s := range d.steps() {
		if err := d.perform(ctx, number, s); err != nil {
			return err
		}
	}
	return nil
}
