package prometheus

import (
	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// NewCollector returns a collector of the metrics of stores and groups, and of all
// members that those groups have when it is scraped. A registry takes one; where
// there must be several, for example one for each cluster, each is registered with
// a label of its own, by prometheus.WrapRegistererWith.
func NewCollector(of ...safestore.Readiness) prom.Collector {
	return NewCollectorFunc(func() []safestore.Readiness { return of })
}

// NewCollectorFunc is [NewCollector] for stores and groups that come and go: of is
// called each time that the collector is scraped, from any goroutine, and should not
// wait. NewCollectorFunc panics if it is nil.
func NewCollectorFunc(of func() []safestore.Readiness) prom.Collector {
	if of == nil {
		panic("safestore/prometheus: NewCollectorFunc with a nil function")
	}
	c := &collector{of: of, metrics: map[string]metric{}}
	for _, m := range safestore.Metrics() {
		desc := prom.V2.NewDesc(m.Name, m.Help, prom.UnconstrainedLabels(m.Labels), nil, prom.WithUnit(m.Unit))
		c.metrics[m.Name] = metric{desc, m.Type}
	}
	return c
}

type collector struct {
	of      func() []safestore.Readiness
	metrics map[string]metric // by name; never changed
}

type metric struct {
	desc *prom.Desc
	of   safestore.MetricType
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prom.Desc) {
	for _, m := range c.metrics {
		descs <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(values chan<- prom.Metric) {
	for sample := range safestore.Samples(c.of()...) {
		m := c.metrics[sample.Metric]
		value, err := m.value(sample)
		if err != nil {
			value = prom.NewInvalidMetric(m.desc, err)
		}
		values <- value
	}
}

func (m metric) value(s safestore.Sample) (prom.Metric, error) {
	switch m.of {
	case safestore.Counter:
		return prom.NewConstMetric(m.desc, prom.CounterValue, s.Value, s.Labels...)
	case safestore.Histogram:
		buckets := map[float64]uint64{}
		for bound, n := range s.Durations.Buckets() {
			buckets[bound.Seconds()] = n
		}
		return prom.NewConstHistogram(m.desc, s.Durations.Count(), s.Durations.Sum.Seconds(), buckets, s.Labels...)
	default:
		return prom.NewConstMetric(m.desc, prom.GaugeValue, s.Value, s.Labels...)
	}
}
