package prometheus_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-safestore/kube-safestore/safestore"
	safeprom "github.com/kube-safestore/kube-safestore/safestore/prometheus"
)

// A registry, which checks every value against its description, takes all of them,
// and Prometheus' linter has nothing to say.
func TestRegistryTakesAll(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		s := w.store("maps")
		group, err := safestore.NewGroup("all", s)
		require.NoError(t, err)
		defer group.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Subscribe("listener").Handle(ctx, func(safestore.Change[*corev1.ConfigMap]) error { return nil })
		w.fill(3)
		w.registry.MustRegister(safeprom.NewCollector(group))

		problems, err := testutil.GatherAndLint(w.registry)
		require.NoError(t, err)
		assert.Empty(t, problems)
		families, err := w.registry.Gather()
		require.NoError(t, err)
		gathered := map[string]string{}
		for _, family := range families {
			gathered[family.GetName()] = strings.ToLower(family.GetType().String()) + " " + family.GetUnit() + " " + family.GetHelp()
		}
		described := map[string]string{}
		for _, m := range safestore.Metrics() {
			described[m.Name] = string(m.Type) + " " + m.Unit + " " + m.Help
		}
		assert.Equal(t, described, gathered)
	})
}

func TestValues(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		s := w.store("maps")
		w.fill(3)
		time.Sleep(5 * time.Second)
		w.registry.MustRegister(safeprom.NewCollector(s))
		require.NoError(t, testutil.GatherAndCompare(w.registry, strings.NewReader(`
# HELP safestore_objects Objects in the last snapshot, current or not.
# TYPE safestore_objects gauge
safestore_objects{store="maps"} 3
# HELP safestore_ready Whether reads are answered now: 1 if they are, else 0.
# TYPE safestore_ready gauge
safestore_ready{store="maps"} 1
# HELP safestore_silence_seconds Time since the server gave a sign of life; absent before the first one.
# TYPE safestore_silence_seconds gauge
safestore_silence_seconds{store="maps"} 5
# HELP safestore_syncs_total Complete sets that were listed.
# TYPE safestore_syncs_total counter
safestore_syncs_total{store="maps"} 1
# HELP safestore_apply_duration_seconds Time from the receipt of an event to when readers could see it.
# TYPE safestore_apply_duration_seconds histogram
safestore_apply_duration_seconds_bucket{store="maps",le="1e-05"} 3
safestore_apply_duration_seconds_bucket{store="maps",le="0.0001"} 3
safestore_apply_duration_seconds_bucket{store="maps",le="0.001"} 3
safestore_apply_duration_seconds_bucket{store="maps",le="0.01"} 3
safestore_apply_duration_seconds_bucket{store="maps",le="0.1"} 3
safestore_apply_duration_seconds_bucket{store="maps",le="1"} 3
safestore_apply_duration_seconds_bucket{store="maps",le="+Inf"} 3
safestore_apply_duration_seconds_sum{store="maps"} 0
safestore_apply_duration_seconds_count{store="maps"} 3
`), "safestore_objects", "safestore_ready", "safestore_silence_seconds", "safestore_syncs_total", "safestore_apply_duration_seconds"))
		assert.True(t, s.Revoke(s.Token(), nil))
		assert.Equal(t, 0., w.gauge("safestore_ready", "maps"), "a scrape shows what is so then")
	})
}

// gauge returns the value of a metric of one store, and -1 if there is none.
func (w *wire) gauge(name, store string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	require.NoError(w.t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == store {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// Stores come and go with the group, or as the program says.
func TestStoresComeAndGo(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		one, two := w.store("one"), w.store("two")
		group, err := safestore.NewGroup("all", one)
		require.NoError(t, err)
		defer group.Close()
		var more []safestore.Readiness
		w.registry.MustRegister(safeprom.NewCollectorFunc(func() []safestore.Readiness {
			return append([]safestore.Readiness{group}, more...)
		}))
		assert.Equal(t, 1., w.gauge("safestore_ready", "one"))
		assert.Equal(t, -1., w.gauge("safestore_ready", "two"))
		require.NoError(t, group.Add(two))
		assert.Equal(t, 1., w.gauge("safestore_ready", "two"))
		group.Remove("one")
		assert.Equal(t, -1., w.gauge("safestore_ready", "one"))
		more = []safestore.Readiness{one, two, nil}
		assert.Equal(t, 1., w.gauge("safestore_ready", "one"))
		assert.Equal(t, 1., w.gauge("safestore_ready", "two"), "also as a member: it is measured once")
	})
}

// Scrapes at the same time as everything else find nothing that contradicts
// itself; the race detector finds nothing either.
func TestScrapesWhileStoresAreBusy(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		s := w.store("maps")
		w.registry.MustRegister(safeprom.NewCollector(s))
		var scrapes sync.WaitGroup
		for range 4 {
			scrapes.Go(func() {
				for range 25 {
					families, err := w.registry.Gather()
					assert.NoError(t, err)
					assert.NotEmpty(t, families)
				}
			})
		}
		for range 20 {
			w.fill(5)
			s.Revoke(s.Token(), nil)
		}
		scrapes.Wait()
	})
}

// Whatever stores are called, no scrape fails: neither names that are no text nor
// names that are taken.
func TestNamesOfAllKinds(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.registry.MustRegister(safeprom.NewCollector(
			w.store("a\xff"), w.store("a\xfe"), w.store("b"), w.store("b#2"), w.store("b"), w.store(`"\`+"\n")))
		for _, name := range []string{"a\uFFFD", "a\uFFFD#2", "b", "b#2", "b#3", `"\` + "\n"} {
			assert.Equal(t, 1., w.gauge("safestore_ready", name), "%q", name)
		}
	})
}

// What cannot be exported is an error of the scrape, and no panic: here a reason
// of a policy that is no text.
func TestWhatCannotBeExportedIsAnError(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		w.registry.MustRegister(safeprom.NewCollector(w.badlyRevoked()))
		_, err := w.registry.Gather()
		assert.ErrorContains(t, err, "not valid UTF-8")
	})
}

func TestCollectorsAreNotRegisteredTwice(t *testing.T) {
	registry := prom.NewRegistry()
	require.NoError(t, registry.Register(safeprom.NewCollector()))
	assert.ErrorAs(t, registry.Register(safeprom.NewCollector()), &prom.AlreadyRegisteredError{})
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.Empty(t, families, "of nothing")

	registry = prom.NewRegistry()
	for _, cluster := range []string{"a", "b"} { // of one program
		labelled := prom.WrapRegistererWith(prom.Labels{"cluster": cluster}, registry)
		assert.NoError(t, labelled.Register(safeprom.NewCollector()))
	}
	assert.Panics(t, func() { safeprom.NewCollectorFunc(nil) })
}
