package safestore

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
)

// Sync is a barrier: when it returns nil, everything that was committed to the
// server before the call is visible to reads of this store. It asks the server,
// with the small requests of a proof of freshness; many callers share one. It
// waits across revocations, until ctx ends or the store is closed; its errors are
// those of [Store.WaitReady]. From a server without resource versions no proof can
// be had, and Sync waits until ctx ends.
func (s *Store[T]) Sync(ctx context.Context) error {
	number := s.watcher.Prove()
	return s.waitUntil(ctx, func(snapshot *Snapshot[T]) bool { return snapshot.proof.Number >= number })
}

// WaitFor waits until reads of this store reflect the given object as the server
// returned it, or a later state: read your own write. It also returns nil when
// the object has been deleted since.
//
// Revocations do not end the wait if the server's versions keep their order
// across them, as with a relist or a watch that was stuck. Those that make the
// object's version void do, with the revocation in the error:
// [invalidation.Rewound], and where the data was dropped. The other errors are
// those of [Store.WaitReady]. An object without a resource version cannot be
// waited for, and is an error at once.
func (s *Store[T]) WaitFor(ctx context.Context, obj metav1.Object) error {
	key, version := Key(obj), obj.GetResourceVersion()
	if err := s.scope.covers(key); err != nil {
		return err
	}
	if version == "" {
		return errors.New("safestore: WaitFor an object without a resource version")
	}
	return s.waitUntilOrVoid(ctx, func(snapshot *Snapshot[T]) bool {
		if versions.Reached(snapshot.version, version) {
			return true
		}
		// Where versions do not compare, the object itself must show up.
		held, ok := snapshot.set.identity(key)
		return ok && held.uid == obj.GetUID() && versions.Reached(held.version, version)
	})
}

// WaitForVersion waits until reads of this store reflect a resource version of
// its collection, as a list or an earlier [Snapshot] reports it. Bookmarks count.
// Its errors are those of [Store.WaitFor].
func (s *Store[T]) WaitForVersion(ctx context.Context, version string) error {
	if version == "" {
		return errors.New("safestore: WaitForVersion without a resource version")
	}
	return s.waitUntilOrVoid(ctx, func(snapshot *Snapshot[T]) bool { return versions.Reached(snapshot.version, version) })
}

// WaitForDeletion waits until the given object is gone, or another one of another
// UID has taken its name, and reads of this store reflect that. What the store does
// not hold it may not have heard of yet: it counts as gone when the store has
// reached the object's resource version, or has had the object during the call.
// Where versions do not compare, and for an object without one, a proof as for
// [Store.Sync] is asked for. Its errors are those of [Store.WaitFor].
func (s *Store[T]) WaitForDeletion(ctx context.Context, obj metav1.Object) error {
	key, version, uid := Key(obj), obj.GetResourceVersion(), obj.GetUID()
	if err := s.scope.covers(key); err != nil {
		return err
	}
	var seen bool    // it was there during the call
	var proof uint64 // the number of one that decides; zero if none was asked for
	return s.waitUntilOrVoid(ctx, func(snapshot *Snapshot[T]) bool {
		held, ok := snapshot.set.identity(key)
		if ok && (uid == "" || held.uid == uid) {
			seen = true
			return false
		}
		switch {
		case seen, version != "" && versions.Reached(snapshot.version, version):
			return true
		case version != "" && versions.Older(snapshot.version, version):
			return false // its creation may be still to come
		case proof == 0:
			proof = s.watcher.Prove()
		}
		return snapshot.proof.Number >= proof
	})
}

// waitUntilOrVoid is waitUntil, ended by a revocation after which the versions
// that were known before mean nothing.
func (s *Store[T]) waitUntilOrVoid(ctx context.Context, done func(*Snapshot[T]) bool) error {
	before := s.lastVoid.Load()
	return s.waitUntil(ctx, done, func() error {
		r := s.lastVoid.Load()
		if r == before {
			return nil
		}
		e := s.notReady(nil)
		e.Revocation = r
		return e
	})
}

// isVoid reports whether a revocation breaks the order of versions, or drops what
// they are versions of.
func isVoid(reason invalidation.Reason) bool {
	switch reason {
	case invalidation.Rewound, invalidation.Unauthorized, invalidation.Forbidden, invalidation.ResourceGone,
		invalidation.Unsupported:
		return true
	default:
		return false
	}
}

// waitUntil waits for a ready snapshot that satisfies done, looking at each change
// of the store. It gives up with the error of the first fail that returns one.
func (s *Store[T]) waitUntil(ctx context.Context, done func(*Snapshot[T]) bool, fails ...func() error) error {
	if !s.waitStarted(ctx) {
		return s.notReady(endOf(ctx))
	}
	for {
		changed := s.progress.wait()
		for _, fail := range fails {
			if err := fail(); err != nil {
				return err
			}
		}
		snapshot, ok := s.ready()
		if ctx.Err() != nil {
			return s.gaveUp(ctx)
		}
		if ok && done(snapshot) {
			return nil
		}
		select {
		case <-changed:
		case <-s.closed:
			return s.notReady(nil) // the last revocation says why
		case <-ctx.Done():
			return s.gaveUp(ctx)
		}
	}
}
