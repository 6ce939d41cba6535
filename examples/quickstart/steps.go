package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// watchTimeout is how long a watch lasts, and up to twice that. The server looks
// at rights when a watch is opened: so soon is it noticed that one is missing.
// The default is 5 minutes, but a demo has no patience.
const watchTimeout = 2 * time.Second

// newStore makes the store that the next steps are about.
func (d *demo) newStore(opts safestore.Options) error {
	store, err := safestore.New[*corev1.ConfigMap](watcher.ListWatch(d.reader.CoreV1().ConfigMaps(d.namespace)), opts)
	if err != nil {
		return err
	}
	d.store = store
	d.state = func() string {
		tok := store.Token()
		return fmt.Sprintf("gen %d %v", tok.Generation(), tok.State())
	}

	// Hooks hear of each generation, in order.
	ready, revoked := make(chan *token.Token, 10), make(chan *invalidation.Revocation, 10)
	store.OnReady(func(tok *token.Token) { ready <- tok })
	store.OnRevoke(func(r *invalidation.Revocation) { revoked <- r })
	d.ready, d.revoked = ready, revoked
	return nil
}

// runStore runs the store until stop is called, or the demo ends.
func (d *demo) runStore() {
	var ctx context.Context
	ctx, d.stop = context.WithCancel(d.life)
	stopped := make(chan error, 1)
	d.stopped = stopped
	run := d.store.Run
	go func() {
		defer close(stopped)
		stopped <- run(ctx)
	}()
}

// readWaits makes the store, and reads before it runs.
func (d *demo) readWaits(ctx context.Context) error {
	err := d.newStore(safestore.Options{Watch: watcher.Options{WatchTimeout: watchTimeout, MaxBackoff: watchTimeout}})
	if err != nil {
		return err
	}
	_, err = d.store.Snapshot()
	d.say("store.Snapshot() fails at once: %v", err)

	d.read = make(chan readResult, 1)
	go func() {
		object, err := d.store.Get(d.life, d.key("settings"))
		d.read <- readResult{object, err}
	}()
	d.say("store.Get(settings) is called, and waits ...")
	time.Sleep(500 * time.Millisecond)
	if len(d.read) > 0 {
		return errors.New("the read did not wait")
	}
	d.say("... and still waits.")
	return nil
}

// firstSync runs the store.
func (d *demo) firstSync(ctx context.Context) error {
	d.runStore()
	if err := d.getsReady(ctx); err != nil {
		return err
	}
	r, err := await(ctx, "the read", d.read)
	if err := errors.Join(err, r.err); err != nil {
		return err
	}
	d.say("The Get that waited is answered: settings=%s", r.object.Data["value"])
	d.peer = startInformer(d.life, d.other, d.namespace)
	return until(ctx, "the informer", d.peer.HasSynced)
}

// writeVisible changes the object through another client.
func (d *demo) writeVisible(ctx context.Context) error {
	begun := time.Now()
	written, err := d.write(ctx, d.key("settings"), "v2")
	if err != nil {
		return err
	}
	answered := time.Since(begun)
	if err := d.store.WaitFor(ctx, written); err != nil {
		return err
	}
	waited := time.Since(begun)
	settings, err := d.store.Get(ctx, d.key("settings"))
	if err != nil {
		return err
	}
	d.say("Another client writes settings=v2: answered after %s. store.WaitFor(written) returns after %s, and store.Get says settings=%s.",
		seconds(answered), seconds(waited), settings.Data["value"])
	return until(ctx, "the informer", func() bool { return d.peer.answers(d.key("settings")) == "settings=v2" })
}

// watchExpires makes the API server forget the version that the store is at. A
// server knows none from before its start, once anything else was written.
func (d *demo) watchExpires(ctx context.Context) error {
	job, err := d.startJob(ctx)
	if err != nil {
		return err
	}
	// As behind a load balancer, readers are sent to a server only when it is
	// ready. One that starts answers 403 until it has loaded their rights.
	d.proxy.down.Store(true)
	d.say("The API server restarts. A lost connection alone proves nothing: the token stays.")
	elsewhere := d.key("elsewhere")
	elsewhere.Namespace = "default"
	if _, err := d.write(ctx, elsewhere, "v1"); err != nil {
		return err
	}
	if err := d.cluster.API.Restart(ctx); err != nil {
		return err
	}
	if _, err := d.write(ctx, d.key("settings"), "v3"); err != nil {
		return err
	}
	d.proxy.down.Store(false)
	d.say("It is back. Somebody was faster than we are, and has written settings=v3.")

	if err := d.getsRevoked(ctx, job, invalidation.Relist); err != nil {
		return err
	}
	if old, age := d.store.Stale(); old != nil {
		d.say("store.Stale(), for those who know what they ask for: %s, %s old", answers(old.Get, d.key("settings")), seconds(age))
	}
	d.compare(ctx, "settings")
	return d.getsReady(ctx, "settings")
}

// programRevokes stands in for watchExpires on a cluster that is not ours.
func (d *demo) programRevokes(ctx context.Context) error {
	job, err := d.startJob(ctx)
	if err != nil {
		return err
	}
	d.store.Revoke(d.store.Token(), errors.New("the quickstart says so"))
	if err := d.getsRevoked(ctx, job, invalidation.Requested); err != nil {
		return err
	}
	return d.getsReady(ctx, "settings")
}

// rightWithdrawn takes the right to read from the user that the store runs as,
// and gives it back.
func (d *demo) rightWithdrawn(ctx context.Context) error {
	if d.noRights != nil {
		d.say("Left out: %v", d.noRights)
		return nil
	}
	job, err := d.startJob(ctx)
	if err != nil {
		return err
	}
	if err := d.withdraw(ctx); err != nil {
		return err
	}
	d.say("The store's RoleBinding is deleted. The server looks when the next watch is opened.")
	if err := d.getsRevoked(ctx, job, invalidation.Forbidden); err != nil {
		return err
	}
	if old, _ := d.store.Stale(); old != nil {
		return errors.New("the store still holds what its user may not read")
	}
	d.say("store.Stale(): nothing. What its user may no longer read, the store has dropped.")

	if _, err := await(ctx, "the informer to be refused", d.peer.refused); err != nil {
		return err
	}
	if _, err := d.write(ctx, d.key("added"), "v1"); err != nil {
		return err
	}
	d.say("The informer has been refused as well. Then somebody creates added=v1.")
	d.compare(ctx, "settings", "added")
	if err := d.grant(ctx); err != nil {
		return err
	}
	d.say("The RoleBinding is created again.")
	return d.getsReady(ctx, "settings", "added")
}

// bound is how old the newest proof may be that the last store shows everything.
const bound = 5 * time.Second

// streamStalls shows what a store with a bound makes of a watch that is open but
// brings nothing.
func (d *demo) streamStalls(ctx context.Context) error {
	d.stop()
	d.peer.stop()
	if _, err := await(ctx, "the end of the store", d.stopped); err != nil {
		return err
	}
	if _, err := await(ctx, "the end of the informer", d.peer.stopped); err != nil {
		return err
	}
	if err := d.newStore(safestore.Options{MaxStaleness: bound}); err != nil {
		return err
	}
	d.runStore()
	d.peer = startInformer(d.life, d.other, d.namespace)
	d.say("The store is replaced by one with a bound: what it shows is never older than %v. The informer begins anew as well.", bound)
	if err := d.getsReady(ctx, "settings"); err != nil {
		return err
	}
	if err := until(ctx, "the informer", d.peer.HasSynced); err != nil {
		return err
	}
	job, err := d.startJob(ctx)
	if err != nil {
		return err
	}
	if err := until(ctx, "both watches", func() bool { return d.proxy.stall(storeReader, informerReader) }); err != nil {
		return err
	}
	stalled := time.Now()
	d.say("A proxy on the way holds back what the open watches bring, the store's and the informer's. Their " +
		"connections live, and other requests pass.")
	if _, err := d.write(ctx, d.key("settings"), "v4"); err != nil {
		return err
	}
	d.say("Somebody writes settings=v4.")

	if err := d.getsRevoked(ctx, job, invalidation.Stuck, invalidation.Stale); err != nil {
		return err
	}
	r := d.store.Status().Revocation
	d.say("That was %s after the watch stalled.", seconds(r.Since.Sub(stalled)))
	d.compare(ctx, "settings")
	if err := d.getsReady(ctx, "settings"); err != nil {
		return err
	}
	d.say("The store has opened another watch, from where the first one had stalled. The informer knows of nothing:")
	d.compare(ctx, "settings")
	return nil
}
