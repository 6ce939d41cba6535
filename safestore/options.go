package safestore

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Options adjust a store. The zero value is what most programs want.
type Options struct {
	// Name is how the store is called in logs, errors and status. Empty means the
	// type of its objects, such as "v1.Pod". Programs with several stores of one
	// type give each a name.
	Name string

	// MaxStaleness is how old the newest proof of freshness may be when a read
	// succeeds: with 30 seconds, a read includes everything that was committed 30
	// seconds ago, or it fails. At least two seconds; zero means no bound. It is
	// the same as Watch.MaxStaleness, and only one of them may be set.
	MaxStaleness time.Duration

	// GaplessRelist keeps the store ready while the set is listed again because
	// the server has forgotten its version (410), for as long as MaxSilence or
	// MaxStaleness allow. The old token still ends, in the same step in which the
	// new set is published under the next one: work is cancelled, hooks hear of
	// both, but no read fails. False means that reads fail, or wait, from the
	// moment the relist begins.
	GaplessRelist bool

	// Lenient keeps the store ready when single objects cannot be kept, because they
	// cannot be decoded, or a transform or an index function fails on them (C24).
	// Reading such an object fails with a [*BadObjectError], and a List that it might
	// belong to returns the others together with [ErrPartial]. False means that the
	// store is not ready, for [invalidation.BadData], until the object is mended.
	//
	// Decoding is told apart by object only if the store does it: give New a dynamic
	// client. A typed client fails with a whole list or watch at once.
	Lenient bool

	// MaxObjects and MaxBytes are how many objects the store may hold, and of how
	// many bytes: a set that outgrows them is not kept, and the store is not ready,
	// for [invalidation.TooLarge], until there are fewer (C42). The bytes are those
	// of the objects' encoded form, protobuf or JSON, which is less than they take in
	// memory; finding them out costs a moment for each object. While a set is listed
	// again, the store holds what differs of two sets. Zero is no limit.
	MaxObjects int
	MaxBytes   int64

	// Watch adjusts how the server is listed and watched.
	Watch watcher.Options
}

// Option is a setting of a store that depends on the type of its objects: see
// [WithIndex] and [WithTransform].
type Option[T Object] func(*Store[T]) error

// Validate reports the first field that makes no sense, by its name.
func (o Options) Validate() error {
	if o.MaxStaleness != 0 && o.Watch.MaxStaleness != 0 && o.MaxStaleness != o.Watch.MaxStaleness {
		return errors.New("MaxStaleness and Watch.MaxStaleness are both set, and differ")
	}
	if o.MaxObjects < 0 {
		return fmt.Errorf("MaxObjects is negative: %d", o.MaxObjects)
	}
	if o.MaxBytes < 0 {
		return fmt.Errorf("MaxBytes is negative: %d", o.MaxBytes)
	}
	if err := (watcher.Options{MaxStaleness: o.MaxStaleness}).Validate(); err != nil {
		return err
	}
	if err := o.Watch.Validate(); err != nil {
		return fmt.Errorf("Watch.%w", err)
	}
	return nil
}

// watch returns the options of the watcher.
func (o Options) watch() watcher.Options {
	w := o.Watch
	w.MaxStaleness = max(w.MaxStaleness, o.MaxStaleness)
	if o.GaplessRelist {
		w.Policy = gapless(w.Policy)
	}
	return w
}

// gapless is a policy that keeps the token through a relist.
func gapless(p invalidation.Policy) invalidation.Policy {
	return func(o invalidation.Observation) invalidation.Decision {
		d := p.Decide(o)
		if o.Seen == invalidation.VersionExpired && d.Revoke == invalidation.Relist {
			d.Revoke = ""
		}
		return d
	}
}
