package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/util/workqueue"

	"github.com/kube-safestore/kube-safestore/safestore/controller"
)

// queueMetrics are those of client-go's queues that have a name.
type queueMetrics struct {
	names map[string]bool
	adds  counter
}

type counter struct{ n int }

func (c *counter) Inc()            { c.n++ }
func (c *counter) Dec()            {}
func (c *counter) Set(float64)     {}
func (c *counter) Observe(float64) {}

func (m *queueMetrics) NewDepthMetric(string) workqueue.GaugeMetric { return &counter{} }
func (m *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	m.names[name] = true
	return &m.adds
}
func (m *queueMetrics) NewLatencyMetric(string) workqueue.HistogramMetric      { return &counter{} }
func (m *queueMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return &counter{} }
func (m *queueMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return &counter{}
}
func (m *queueMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return &counter{}
}
func (m *queueMetrics) NewRetriesMetric(string) workqueue.CounterMetric { return &counter{} }

// What client-go knows of a queue is told under the controller's name; how work went
// is in the status.
func TestMetricsAndStatus(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		metrics := &queueMetrics{names: map[string]bool{}}
		end := make(chan error)
		c := b.new(controller.Options{MetricsProvider: metrics}, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			select {
			case err := <-end:
				return controller.Result{}, err
			case <-ctx.Done():
				return controller.Result{}, nil
			}
		})
		is := func(queued, running int, succeeded, failed, cut uint64) {
			t.Helper()
			synctest.Wait()
			got := c.Status()
			assert.Equal(t, "test", got.Readiness.Name)
			got.Readiness = controller.Status{}.Readiness
			assert.Equal(t, controller.Status{Queued: queued, Running: running, Succeeded: succeeded, Failed: failed, Cut: cut}, got)
		}
		is(0, 0, 0, 0, 0)
		stop := b.start(c)
		is(1, 1, 0, 0, 0)
		end <- nil
		is(0, 1, 1, 0, 0)
		end <- errTest
		is(0, 0, 1, 1, 0)
		time.Sleep(time.Second)
		is(0, 1, 1, 1, 0)
		b.revoke(c)
		is(0, 1, 1, 1, 1)
		stop(nil)
		is(0, 0, 1, 1, 2)
		assert.Equal(t, map[string]bool{"test": true}, metrics.names)
		assert.Greater(t, metrics.adds.n, 3)
	})
}
