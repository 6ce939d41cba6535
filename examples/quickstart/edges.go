package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
)

// job is work that depends on what was read, and must not outlive it.
type job struct {
	begun time.Time
	ended chan error // why
}

// startJob starts a job under the token of the current generation.
func (d *demo) startJob(ctx context.Context) (*job, error) {
	tok, err := d.store.WaitReady(ctx)
	if err != nil {
		return nil, err
	}
	j := &job{begun: time.Now(), ended: make(chan error, 1)}
	work, done := tok.Tie(d.life) // ends with the token, or with the demo
	go func() {
		defer done()
		<-work.Done() // a real job hands this context to everything it calls
		j.ended <- context.Cause(work)
	}()
	d.say("A job starts under the token of generation %d.", tok.Generation())
	return j, nil
}

// getsRevoked waits for the end of the current generation and shows it from all
// sides.
func (d *demo) getsRevoked(ctx context.Context, j *job, want ...invalidation.Reason) error {
	r, err := await(ctx, "the revocation", d.revoked)
	if err != nil {
		return err
	}
	// At once, since the store is already at work on the next generation.
	snapshot, refused := d.store.Snapshot()
	d.say("REVOKED: generation %d, for %s%s.", r.Generation, r.Reason, answered(r))
	d.reasons = append(d.reasons, string(r.Reason))
	// Only after the program's own call may the next generation be there already.
	if refused == nil && (r.Reason != invalidation.Requested || snapshot.Token().Generation() <= r.Generation) {
		return errors.New("a read was answered where it had to fail")
	}

	cause, err := await(ctx, "the end of the job", j.ended)
	if err != nil {
		return err
	}
	if !slices.Contains(want, r.Reason) || !errors.Is(cause, r.Reason) {
		return fmt.Errorf("revoked for another reason than %s: %w; the job: %w", want, r, cause)
	}
	d.say("The job is cancelled after %s. Its context's cause says %s.", seconds(time.Since(j.begun)), r.Reason)
	return nil
}

// getsReady waits for the next generation, and reads the named objects.
func (d *demo) getsReady(ctx context.Context, names ...string) error {
	tok, err := await(ctx, "readiness", d.ready)
	if err != nil {
		return err
	}
	snapshot, err := d.store.Snapshot()
	if err != nil {
		return err
	}
	d.count(tok)
	after := ""
	if r := d.store.Status().Revocation; r != nil {
		after = fmt.Sprintf(", %s after the revocation", seconds(time.Since(r.Since)))
	}
	d.say("READY: generation %d (objects: %d, resource version: %s)%s.",
		tok.Generation(), snapshot.Len(), snapshot.ResourceVersion(), after)
	if len(names) > 0 {
		d.say("SafeStore:  %s", answers(snapshot.Get, d.keys(names)...))
	}
	return nil
}

// count takes a generation down for the summary.
func (d *demo) count(tok *token.Token) {
	if last := len(d.generations) - 1; tok.Generation() > 1 {
		d.generations[last] += fmt.Sprintf(", %d", tok.Generation())
		return
	}
	d.generations = append(d.generations, "1")
}

// compare shows three answers to the same question, at the same moment.
func (d *demo) compare(ctx context.Context, names ...string) {
	keys := d.keys(names)
	if snapshot, err := d.store.Snapshot(); err != nil {
		d.say("SafeStore:  %s", short(err))
	} else {
		d.say("SafeStore:  %s", answers(snapshot.Get, keys...))
	}
	d.say("client-go:  HasSynced()=%t, %s", d.peer.HasSynced(), d.peer.answers(keys...))
	d.say("cluster:    %s", answers(func(key types.NamespacedName) (*corev1.ConfigMap, error) {
		return d.admin.CoreV1().ConfigMaps(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}, keys...))
}

// answers asks for objects and puts the answers together.
func answers(get func(types.NamespacedName) (*corev1.ConfigMap, error), keys ...types.NamespacedName) string {
	var all []string
	for _, key := range keys {
		switch object, err := get(key); {
		case err == nil:
			all = append(all, key.Name+"="+object.Data["value"])
		case apierrors.IsNotFound(err):
			all = append(all, key.Name+" not found")
		default:
			all = append(all, key.Name+": "+err.Error())
		}
	}
	return strings.Join(all, ", ")
}

// answered names the server's answer that led to a revocation, if one did.
func answered(r *invalidation.Revocation) string {
	var status apierrors.APIStatus
	if !errors.As(r, &status) {
		return ""
	}
	return fmt.Sprintf(": the server answered %d %s", status.Status().Code, status.Status().Reason)
}

// short leaves out of an error what a line has no room for: which store, since
// when, and what it does about it.
func short(err error) string {
	var r *invalidation.Revocation
	if !errors.As(err, &r) {
		return err.Error()
	}
	return fmt.Sprintf("%v: %s: %v", safestore.ErrNotReady, r.Reason, r.Cause)
}
