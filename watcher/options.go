package watcher

import (
	"fmt"
	"time"

	"github.com/kube-safestore/kube-safestore/internal/versions"
	"github.com/kube-safestore/kube-safestore/invalidation"
)

// Options adjust a Watcher. The zero value is what most programs want.
type Options struct {
	// PageSize is the number of objects asked for in one page of a LIST. Zero
	// means 500; negative asks for everything in one page.
	PageSize int64

	// WatchTimeout is how long a watch may last before it is closed and resumed
	// from where it was, in whole seconds, at least one. Each watch gets a random
	// length between this and twice this, so that replicas do not return in step.
	// The server is asked to keep to it, and the watcher does not rely on that
	// (C4). Zero means 5 minutes.
	//
	// A right that is withdrawn is noticed when the watch is opened next (the
	// server does not close open watches for it): a shorter timeout notices
	// sooner.
	WatchTimeout time.Duration

	// MaxSilence is how long nothing may be heard from the server, neither from
	// the watch nor by a proof of freshness, before a proof is asked for and, if it
	// fails, the token is revoked for [invalidation.Stuck]. While there is no watch,
	// because the server cannot be reached, the token is revoked for
	// [invalidation.Stale] when it has passed. At least a second; zero means 75
	// seconds, a little more than the minute after which kube-apiserver sends a
	// bookmark on a quiet watch, so that there a proof is only needed when
	// something is wrong; or MaxStaleness, if that is shorter.
	MaxSilence time.Duration

	// MaxStaleness is how old the newest proof of freshness may be for the store
	// to be ready: a read then includes all that was committed that long ago.
	// Proofs are asked for as often as it needs. At least two seconds; zero means
	// no bound. See the README for what it costs the server.
	MaxStaleness time.Duration

	// AuditInterval, if not zero, is how often the whole set is compared with a
	// consistent list, key by key and version by version, against servers whose own
	// watch cache loses events (C52). A difference that the watch does not bring
	// revokes for [invalidation.Diverged], and the set is listed again. At least a
	// second; it costs the server a list each time, in pages. An audit is also what
	// stands in for a proof where the server sends no bookmarks.
	AuditInterval time.Duration

	// AuditSource is what audits list, for example a metadata client of the same
	// resource, namespace and selectors, which needs less of the server and the
	// network. Nil means the source itself.
	AuditSource Source

	// Reconnect, if not nil, is called before a watch that was found stuck is
	// opened again. New requests of one client travel over the connection that it
	// has, also if that is the one that is stuck behind a proxy: this is the place
	// to close it, for example with utilnet.CloseIdleConnectionsFor on the client's
	// transport. It must not block.
	Reconnect func()

	// MinVersion is a resource version that the first set must have reached, for
	// programs that remember one across restarts: an older set is taken for a
	// server that went back in time. Empty means any.
	MinVersion string

	// RequestTimeout is how long a page of a LIST, or the opening of a watch, may
	// take before it is given up and tried again. Zero means one minute, which is
	// what an API server allows itself by default.
	RequestTimeout time.Duration

	// InitialEventsTimeout is how long a WatchList may be silent before its end
	// marker has come. After that the set is listed with LIST instead, from then
	// on (C9). Zero means 10 seconds.
	InitialEventsTimeout time.Duration

	// MinBackoff and MaxBackoff bound the exponential, jittered delay between
	// attempts that fail. Only progress resets it: an event, or a watch that
	// lasted (C16). A longer delay asked for by the server (Retry-After) is
	// honoured. Zero means 800 milliseconds, and 30 seconds or MaxStaleness if that
	// is shorter, but no less than 5 seconds.
	MinBackoff, MaxBackoff time.Duration

	// Policy decides what the watcher's observations mean for the token. Nil
	// means [invalidation.Default].
	Policy invalidation.Policy
}

// Validate reports the first field that makes no sense, by its name.
func (o Options) Validate() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"WatchTimeout", o.WatchTimeout},
		{"MaxSilence", o.MaxSilence},
		{"MaxStaleness", o.MaxStaleness},
		{"AuditInterval", o.AuditInterval},
		{"RequestTimeout", o.RequestTimeout},
		{"InitialEventsTimeout", o.InitialEventsTimeout},
		{"MinBackoff", o.MinBackoff},
		{"MaxBackoff", o.MaxBackoff},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s is negative: %v", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name         string
		value, least time.Duration
	}{
		{"WatchTimeout", o.WatchTimeout, time.Second},
		{"MaxSilence", o.MaxSilence, time.Second},
		{"MaxStaleness", o.MaxStaleness, 2 * time.Second},
		{"AuditInterval", o.AuditInterval, time.Second},
	} {
		if f.value != 0 && f.value < f.least {
			return fmt.Errorf("%s is under %v: %v", f.name, f.least, f.value)
		}
	}
	if o.MinVersion != "" && !versions.Resumable(o.MinVersion) {
		return fmt.Errorf("MinVersion is no resource version to start from: %q", o.MinVersion)
	}
	o = o.withDefaults()
	if o.MinBackoff > o.MaxBackoff {
		return fmt.Errorf("MinBackoff %v is over MaxBackoff %v", o.MinBackoff, o.MaxBackoff)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.PageSize == 0 {
		o.PageSize = 500 // client-go's pager: large enough for few round trips, small enough for etcd
	}
	setDefault(&o.WatchTimeout, 5*time.Minute) // client-go's shortest
	if o.MaxStaleness != 0 {
		// Proofs are more frequent than that: silence for longer is no quiet.
		setDefault(&o.MaxSilence, min(75*time.Second, o.MaxStaleness))
		// Who needs fresh data is not kept waiting for it much longer than the bound.
		setDefault(&o.MaxBackoff, max(min(30*time.Second, o.MaxStaleness), 5*time.Second, o.MinBackoff))
	}
	setDefault(&o.MaxSilence, 75*time.Second)           // kube-apiserver's bookmarks come every minute
	setDefault(&o.RequestTimeout, time.Minute)          // kube-apiserver's --request-timeout
	setDefault(&o.InitialEventsTimeout, 10*time.Second) // client-go begins to warn here
	setDefault(&o.MinBackoff, 800*time.Millisecond)     // client-go's reflector
	setDefault(&o.MaxBackoff, 30*time.Second)           // client-go's reflector
	return o
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
