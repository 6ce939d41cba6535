package safestore

import (
	"maps"
	"slices"
	"time"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// Metric describes one thing that is measured of stores or of groups. Names follow
// the conventions of Prometheus and OpenMetrics.
type Metric struct {
	// Name is unique among all metrics.
	Name string
	// Type says what its values mean.
	Type MetricType
	// Unit is what it is measured in, and the end of its name but for "_total";
	// empty for mere numbers.
	Unit string
	// Labels are the names of its labels: first "store" or "group", whose value is
	// the name of that.
	Labels []string
	// Help is one line for people.
	Help string
}

// MetricType says what the values of a metric mean.
type MetricType string

// The types of metrics.
const (
	Gauge     MetricType = "gauge"     // what is so now
	Counter   MetricType = "counter"   // how often something has happened; it only grows, until a store is replaced
	Histogram MetricType = "histogram" // how long something took, each time
)

// Metrics returns the descriptions of all metrics that [Samples] may have values
// of. They do not change while a program runs.
func Metrics() []Metric {
	var all []Metric
	for _, m := range slices.Concat(storeMetrics, groupMetrics) {
		all = append(all, m.Metric)
	}
	return all
}

// metric is a Metric and where its values are in a status.
type metric struct {
	Metric
	values    func(Status, valueFunc)
	durations func(Status) watcher.Durations // in place of values, for histograms
}

// valueFunc takes one value of a metric, with those of its labels that come after
// the first.
type valueFunc func(value float64, labels ...string)

var storeMetrics = []metric{
	{Metric: Metric{"safestore_ready", Gauge, "", []string{"store"},
		"Whether reads are answered now: 1 if they are, else 0."},
		values: readyNow},
	{Metric: Metric{"safestore_generation", Gauge, "", []string{"store"},
		"Number of the current token; each end of one makes it larger."},
		values: generation},
	{Metric: Metric{"safestore_revocations_total", Counter, "", []string{"store", "reason"},
		"Tokens that were revoked, whether they had been ready or not."},
		values: revocations},
	{Metric: Metric{"safestore_staleness_seconds", Gauge, "seconds", []string{"store"},
		"Age of the newest proof that the store holds everything; absent while it holds nothing."},
		values: func(s Status, value valueFunc) { age(s.Proven, value) }},
	{Metric: Metric{"safestore_silence_seconds", Gauge, "seconds", []string{"store"},
		"Time since the server gave a sign of life; absent before the first one."},
		values: func(s Status, value valueFunc) { age(s.Watch.Heard, value) }},
	{Metric: Metric{"safestore_objects", Gauge, "", []string{"store"},
		"Objects in the last snapshot, current or not."},
		values: func(s Status, value valueFunc) { value(float64(s.Objects)) }},
	{Metric: Metric{"safestore_syncs_total", Counter, "", []string{"store"},
		"Complete sets that were listed."},
		values: count(func(c watcher.Counts) uint64 { return c.Syncs })},
	{Metric: Metric{"safestore_lists_total", Counter, "", []string{"store"},
		"Attempts at listing the set, by a LIST or a WatchList."},
		values: count(func(c watcher.Counts) uint64 { return c.Lists })},
	{Metric: Metric{"safestore_relists_total", Counter, "", []string{"store"},
		"Times that a set which had been complete had to be listed again."},
		values: count(func(c watcher.Counts) uint64 { return c.Relists })},
	{Metric: Metric{"safestore_watches_total", Counter, "", []string{"store"},
		"Watches that were opened to follow a set."},
		values: count(func(c watcher.Counts) uint64 { return c.Watches })},
	{Metric: Metric{"safestore_failures_total", Counter, "", []string{"store"},
		"Requests, watches and proofs that failed."},
		values: count(func(c watcher.Counts) uint64 { return c.Failures })},
	{Metric: Metric{"safestore_proofs_asked_total", Counter, "", []string{"store"},
		"Times that the server was asked for a proof of freshness, audits among them."},
		values: count(func(c watcher.Counts) uint64 { return c.ProofsAsked })},
	{Metric: Metric{"safestore_proofs_total", Counter, "", []string{"store", "result"},
		"Proofs of freshness that came to an end, by result: succeeded or failed."},
		values: proofs},
	{Metric: Metric{"safestore_audits_total", Counter, "", []string{"store"},
		"Times that the set was listed to be compared."},
		values: count(func(c watcher.Counts) uint64 { return c.Audits })},
	{Metric: Metric{"safestore_apply_duration_seconds", Histogram, "seconds", []string{"store"},
		"Time from the receipt of an event to when readers could see it."},
		durations: func(s Status) watcher.Durations { return s.Watch.Counts.Applied }},
	{Metric: Metric{"safestore_subscription_lag_seconds", Gauge, "seconds", []string{"store", "subscription"},
		"Time that a change has waited, at most, for a subscriber to deal with it."},
		values: func(s Status, value valueFunc) {
			s.eachSubscription(func(sub SubscriptionStatus, name string) { value(sub.Lag.Seconds(), name) })
		}},
	{Metric: Metric{"safestore_subscription_changes_total", Counter, "", []string{"store", "subscription"},
		"Changes that a subscriber has dealt with since its loop began."},
		values: func(s Status, value valueFunc) {
			s.eachSubscription(func(sub SubscriptionStatus, name string) { value(float64(sub.Changes), name) })
		}},
}

// Groups have metrics of their own, so that sums over stores are sums of stores.
var groupMetrics = []metric{
	{Metric: Metric{"safestore_group_ready", Gauge, "", []string{"group"},
		"Whether all members of a group are ready now: 1 if they are, else 0."},
		values: readyNow},
	{Metric: Metric{"safestore_group_generation", Gauge, "", []string{"group"},
		"Number of the group's current token; each end of one makes it larger."},
		values: generation},
	{Metric: Metric{"safestore_group_revocations_total", Counter, "", []string{"group", "reason"},
		"Tokens of the group that were revoked."},
		values: revocations},
}

func readyNow(s Status, value valueFunc) {
	if s.State == token.Ready {
		value(1)
		return
	}
	value(0)
}

// count is a metric of one of the counts of the watcher.
func count(of func(watcher.Counts) uint64) func(Status, valueFunc) {
	return func(s Status, value valueFunc) { value(float64(of(s.Watch.Counts))) }
}

func generation(s Status, value valueFunc) { value(float64(s.Generation)) }

// reasons are those of this library. Each has a value from the beginning, so that
// the first revocation shows as a rise.
var reasons = []invalidation.Reason{
	invalidation.Stale, invalidation.Stuck, invalidation.Diverged, invalidation.Relist, invalidation.Rewound,
	invalidation.Unauthorized, invalidation.Forbidden, invalidation.ResourceGone, invalidation.Unsupported, invalidation.BadData,
	invalidation.TooLarge, invalidation.Requested, invalidation.Closed,
}

func revocations(s Status, value valueFunc) {
	counts := map[invalidation.Reason]uint64{}
	for _, reason := range reasons {
		counts[reason] = 0
	}
	maps.Copy(counts, s.Revocations)
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		value(float64(counts[reason]), string(reason))
	}
}

func age(moment time.Time, value valueFunc) {
	if !moment.IsZero() {
		value(max(0, watcher.Age(moment, time.Now()).Seconds()))
	}
}

func proofs(s Status, value valueFunc) {
	value(float64(s.Watch.Counts.Proofs), "succeeded")
	value(float64(s.Watch.Counts.ProofsFailed), "failed")
}

func (s Status) eachSubscription(f func(_ SubscriptionStatus, name string)) {
	names := names{}
	for _, sub := range s.Subscriptions {
		f(sub, names.unique(sub.Name))
	}
}
