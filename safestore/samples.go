package safestore

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// Sample is one value of a metric at one moment.
type Sample struct {
	// Metric is the name of the metric.
	Metric string
	// Labels are the values of its labels, in their order.
	Labels []string
	// Value is that of a gauge or a counter, and Durations that of a histogram.
	Value     float64
	Durations watcher.Durations
}

// Samples returns the values of all metrics now: of the stores and groups that are
// given, and of all members of those groups, each once. It is what a metrics system
// polls; nothing is kept, so that whoever is no longer given is no longer measured.
// Nil is left out.
//
// Of stores of one name, in one call, those after the first are told apart by a
// number ("pods#2"), as are groups, and subscriptions of a store. [Options].Name is
// the better way.
//
// Samples may be called, and its result used, from any goroutine. It never waits.
func Samples(of ...Readiness) iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		p := poll{yield: yield, seen: map[Readiness]bool{}, stores: names{}, groups: names{}}
		p.all(of)
	}
}

// subscriptionMetrics are those that have subscriptions.
var subscriptionMetrics = slices.DeleteFunc(slices.Clone(storeMetrics), func(m metric) bool {
	return !slices.Contains(m.Labels, "subscription")
})

// poll is one pass over stores and groups.
type poll struct {
	yield          func(Sample) bool
	seen           map[Readiness]bool
	stores, groups names
}

func (p *poll) all(of []Readiness) (more bool) {
	for _, r := range of {
		if isNil(r) || p.seen[r] {
			continue
		}
		p.seen[r] = true
		_ = r.NotReady() // so that a bound that has passed unnoticed shows in the status (C7)
		more, status := true, r.Status()
		if g, ok := r.(interface{ Members() []Readiness }); ok { // a Group, a StoreSet or Namespaces
			more = p.one(groupMetrics, status, p.groups)
			if len(status.Subscriptions) > 0 { // to Namespaces: they are one store to their subscribers
				more = more && p.one(subscriptionMetrics, status, p.stores)
			}
			more = more && p.all(g.Members())
		} else {
			more = p.one(storeMetrics, status, p.stores)
		}
		if !more {
			return false
		}
	}
	return true
}

// one yields the values of metrics in one status.
func (p *poll) one(metrics []metric, s Status, taken names) (more bool) {
	name := taken.unique(s.Name)
	more = true
	for _, m := range metrics {
		if m.durations != nil {
			more = more && p.yield(Sample{Metric: m.Name, Labels: []string{name}, Durations: m.durations(s)})
			continue
		}
		m.values(s, func(value float64, labels ...string) {
			more = more && p.yield(Sample{Metric: m.Name, Labels: append([]string{name}, labels...), Value: value})
		})
	}
	return more
}

// names are those that are taken.
type names map[string]bool

// unique returns the name as text, with a number if it is taken.
func (n names) unique(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	unique := name
	for i := 2; n[unique]; i++ {
		unique = fmt.Sprintf("%s#%d", name, i)
	}
	n[unique] = true
	return unique
}
