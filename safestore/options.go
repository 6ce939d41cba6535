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
