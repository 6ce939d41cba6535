package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
)

// demo is what the steps share.
type demo struct {
	kubeconfig, assets string
	serverLogs         io.Writer

	*timeline
	place
	life  context.Context // ends with the demo; each step has a shorter one
	store *safestore.Store[*corev1.ConfigMap]
	peer  *informer

	read    chan readResult               // of the read that waits
	stop    func()                        // ends the store
	stopped chan error                    // what Run returned
	ready   chan *token.Token             // what OnReady heard
	revoked chan *invalidation.Revocation // what OnRevoke heard

	generations, reasons []string // for the summary; generations by store
}

type readResult struct {
	object *corev1.ConfigMap
	err    error
}

// step is one part of the demo. It fails if it is not over within its limit.
type step struct {
	title string
	limit time.Duration
	run   func(context.Context) error
}

// steps returns the whole demo: one more step is a line here and a method in
// steps.go. The first and the fifth depend on whose cluster it is.
func (d *demo) steps() []step {
	begin := step{"A control plane starts", 2 * time.Minute, d.startCluster}
	revoke := step{"The watch expires: a restarted API server does not know the store's version any more", time.Minute, d.watchExpires}
	if d.kubeconfig != "" {
		begin = step{"A namespace is made on an existing cluster", time.Minute, d.joinCluster}
		revoke = step{"The program revokes its store itself", 30 * time.Second, d.programRevokes}
	}
	return []step{
		begin,
		{"A read waits until there is something true to say", 10 * time.Second, d.readWaits},
		{"Ready, with the first complete set", 30 * time.Second, d.firstSync},
		{"A write becomes visible", 10 * time.Second, d.writeVisible},
		revoke,
		{"The right to read is withdrawn", time.Minute, d.rightWithdrawn},
		{"A stream stalls: the watch is open, its connection lives, and nothing comes", 30 * time.Second, d.streamStalls},
	}
}

// perform runs a step within its limit. An interrupted one has no more to say
// than that.
func (d *demo) perform(ctx context.Context, number int, s step) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("not done within %v", s.limit))
	defer cancel()
	begun := time.Now()
	d.title(number, s.title)
	err := s.run(limited)
	if err == nil {
		d.took(time.Since(begun))
		return nil
	}
	if interrupted := context.Cause(ctx); interrupted != nil {
		err = interrupted
	} else if late := context.Cause(limited); late != nil && !errors.Is(err, late) {
		err = fmt.Errorf("%w: %w", late, err)
	}
	return fmt.Errorf("step %d (%s): %w", number, s.title, err)
}

// summary is the last line.
func (d *demo) summary() string {
	return fmt.Sprintf("OK after %s: ready as generations %s; revoked for %s, and each time the job was cancelled.",
		seconds(time.Since(d.start)), strings.Join(d.generations, " and "), strings.Join(d.reasons, ", "))
}

// cleanUp waits for what ends with the demo's context, and removes what was made.
func (d *demo) cleanUp() error {
	if d.stopped != nil {
		for range d.stopped { // until it is closed
		}
	}
	if d.peer != nil {
		<-d.peer.stopped
	}
	return d.remove()
}

// await returns what comes from a channel, or fails with ctx's cause.
func await[T any](ctx context.Context, what string, from <-chan T) (T, error) {
	select {
	case v := <-from:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
	}
}

// until returns when the condition is met, or fails with ctx's cause.
func until(ctx context.Context, what string, condition func() bool) error {
	for !condition() {
		if _, err := await(ctx, what, time.After(time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}
