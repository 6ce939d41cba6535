package safestore

import (
	"context"
	"errors"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/token"
)

// stream is one loop over a subscription: a follower of the store that is never
// waited for. It holds no lock while it delivers, and looks at nothing of the store
// but its current snapshot.
//
// Changes come from snapshots that are ready, and are handed out while their token
// is: of a generation that has ended, or whose data was dropped, nothing more is
// told than that. What the subscriber has got by then is what the next generation
// is compared with, so that no object is deleted by a revocation (guarantee 7).
type stream[T Object] struct {
	*Subscription[T]
	deliver func(Change[T]) error

	token    *token.Token // the generation that the subscriber was told of; nil after Revoked
	complete bool         // it was told InitDone of it

	seen  objects[T] // what the subscriber got last, by key
	steps uint64     // of the last snapshot that was handed out in whole
	kept  bool       // seen has objects that the snapshot held back
	until time.Time  // when the subscriber last had all there was
}

// run delivers until ctx ends, the store is closed or deliver fails.
func (s *stream[T]) run(ctx context.Context) error {
	for s.until = time.Now(); ; {
		changed := s.store.changed()
		if ctx.Err() != nil {
			return endOf(ctx)
		}
		more, err := s.step(ctx)
		if err != nil {
			return err
		}
		if more {
			continue
		}
		var ended <-chan struct{} // where there is no gap, the next token is there before the last one is over
		if s.token != nil {
			ended = s.token.Context().Done()
		}
		select {
		case <-changed:
		case <-ended:
		case <-ctx.Done():
		case <-s.store.end():
			if s.token == nil {
				return s.store.unready(nil) // the last revocation says why
			}
		}
		s.until = time.Now()
	}
}

// step delivers the next thing that there is to tell, and reports whether there was
// any.
func (s *stream[T]) step(ctx context.Context) (more bool, err error) {
	if s.token != nil && s.token.State() == token.Revoked {
		c := Change[T]{Type: Revoked, Token: s.token}
		errors.As(s.token.Cause(), &c.Revocation)
		s.token = nil
		return true, s.deliver(c)
	}
	snapshot, ready := s.store.ready()
	switch {
	case !ready:
		return false, nil
	case s.token == nil:
		s.token, s.complete = snapshot.token, false
		return true, s.deliver(Change[T]{Type: Init, Token: s.token})
	case snapshot.token != s.token: // which is about to be over
		return false, nil
	case s.complete && snapshot.steps == s.steps:
		return false, nil
	}
	return true, s.hand(ctx, snapshot)
}

// hand delivers all that is different in a snapshot, for as long as its token is
// ready.
func (s *stream[T]) hand(ctx context.Context, snapshot *Snapshot[T]) error {
	s.lags(s.until)
	defer s.lags(time.Time{})
	s.until = time.Now()
	count := 0
	for c := range s.changesTo(snapshot) {
		if s.over(ctx) {
			s.seen = s.seenAfter(count, snapshot)
			return nil
		}
		if err := s.deliver(c); err != nil {
			return err
		}
		count++
		s.delivered()
	}
	s.seen, s.steps, s.kept = s.seenAll(snapshot), snapshot.steps, snapshot.set.bad.count > 0
	if s.complete || s.over(ctx) {
		return nil
	}
	if err := s.deliver(Change[T]{Type: InitDone, Token: s.token}); err != nil {
		return err
	}
	s.complete = true
	s.reached(s.token)
	return nil
}

// over reports whether nothing more may be delivered of this generation.
func (s *stream[T]) over(ctx context.Context) bool {
	return ctx.Err() != nil || s.token.State() != token.Ready
}

// changesTo are the changes from what the subscriber got last to a snapshot. They
// are the same, in the same order, each time they are asked for.
func (s *stream[T]) changesTo(snapshot *Snapshot[T]) iter.Seq[Change[T]] {
	oneEvent := snapshot.steps == s.steps+1 && !s.kept
	return func(yield func(Change[T]) bool) {
		difference(s.seen, snapshot.set.objects, s.query.namespace, func(key types.NamespacedName, was, is *T) bool {
			was, is = s.covered(was), s.covered(is)
			c := Change[T]{Key: key, Token: s.token}
			switch {
			case was == nil && is == nil, is == nil && snapshot.holdsBack(*was):
				return true
			case was == nil:
				c.Type, c.New = Added, *is
			case is == nil:
				c.Type, c.Old, c.FinalStateUnknown = Deleted, *was, !oneEvent || snapshot.set.bad.has(key)
			case (*was).GetUID() != (*is).GetUID():
				c.Type, c.Old, c.FinalStateUnknown = Deleted, *was, true
				return yield(c) && yield(Change[T]{Type: Added, Key: key, New: *is, Token: s.token})
			default:
				c.Type, c.Old, c.New = Updated, *was, *is
			}
			return yield(c)
		})
	}
}

// covered returns nil in place of an object that the subscription does not cover.
func (s *stream[T]) covered(obj *T) *T {
	if obj == nil || s.query.selectors.match(*obj) {
		return obj
	}
	return nil
}

// seenAfter is what the subscriber has got when that many of the changes to a
// snapshot were delivered.
func (s *stream[T]) seenAfter(count int, snapshot *Snapshot[T]) objects[T] {
	b := s.seen.edit()
	for c := range s.changesTo(snapshot) {
		if count == 0 {
			break
		}
		count--
		if c.Type == Deleted {
			b.delete(c.Key)
		} else {
			b.set(c.Key, c.New)
		}
	}
	return b.objects()
}

// seenAll is what the subscriber has got when all changes to a snapshot were
// delivered: its objects, and those it got before that are held back now.
func (s *stream[T]) seenAll(snapshot *Snapshot[T]) objects[T] {
	if snapshot.set.bad.count == 0 {
		return snapshot.set.objects
	}
	b := snapshot.set.objects.edit()
	for bad := range snapshot.set.bad.all() {
		if old, ok := s.seen.get(bad.Key); ok && snapshot.holdsBack(old) {
			b.set(bad.Key, old)
		}
	}
	return b.objects()
}

// holdsBack reports whether an object that was read before still exists and cannot
// be read, in a lenient store: to its subscribers it is as it was. Another one that
// has taken its name, as the UID says if it has one, does not stand in for it.
func (s *Snapshot[T]) holdsBack(was T) bool {
	bad, ok := s.set.bad.get(Key(was))
	return ok && (bad.uid == "" || bad.uid == was.GetUID())
}
