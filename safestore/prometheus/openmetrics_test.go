package prometheus_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kube-safestore/kube-safestore/safestore"
	safeprom "github.com/kube-safestore/kube-safestore/safestore/prometheus"
)

// parsed is what Prometheus' own parser, which is strict, made of an exposition.
type parsed struct {
	types, units map[string]string
	series       map[string]float64
}

func parseOpenMetrics(t *testing.T, text []byte) parsed {
	t.Helper()
	all := parsed{map[string]string{}, map[string]string{}, map[string]float64{}}
	p := textparse.NewOpenMetricsParser(text, labels.NewSymbolTable())
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, "in:\n%s", text)
		switch entry {
		case textparse.EntryType:
			name, of := p.Type()
			all.types[string(name)] = string(of)
		case textparse.EntryUnit:
			name, unit := p.Unit()
			all.units[string(name)] = string(unit)
		case textparse.EntrySeries:
			var set labels.Labels
			p.Labels(&set)
			_, _, value := p.Series()
			all.series[set.String()] = value
		}
	}
}

// family is how OpenMetrics calls a metric: a counter without its suffix.
func family(m safestore.Metric) string { return strings.TrimSuffix(m.Name, "_total") }

// The handler that programs use serves OpenMetrics text that Prometheus' own parser
// takes, with all metrics in it.
func TestOpenMetricsAsServed(t *testing.T) {
	onWire(t, func(t *testing.T, w *wire) {
		s := w.store("maps")
		group, err := safestore.NewGroup("all", s)
		require.NoError(t, err)
		defer group.Close()
		w.fill(3)
		w.registry.MustRegister(safeprom.NewCollector(group))
		handler := promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		require.Equal(t, http.StatusOK, response.Code)
		require.Contains(t, response.Header().Get("Content-Type"), "application/openmetrics-text; version=1.0.0")
		require.True(t, strings.HasSuffix(response.Body.String(), "\n# EOF\n"))

		got := parseOpenMetrics(t, response.Body.Bytes())
		for _, m := range safestore.Metrics() {
			if strings.HasPrefix(m.Name, "safestore_subscription_") {
				continue // nobody subscribes
			}
			assert.Equal(t, string(m.Type), got.types[family(m)], m.Name)
			assert.Equal(t, m.Unit, got.units[family(m)], m.Name)
		}
		assert.Equal(t, 3., got.series[`{__name__="safestore_objects", store="maps"}`])
		assert.Equal(t, 0., got.series[`{__name__="safestore_revocations_total", reason="Stuck", store="maps"}`])
		assert.Equal(t, 3., got.series[`{__name__="safestore_apply_duration_seconds_bucket", le="1.0", store="maps"}`])
		assert.Equal(t, 3., got.series[`{__name__="safestore_apply_duration_seconds_count", store="maps"}`])
		assert.Equal(t, 1., got.series[`{__name__="safestore_group_ready", group="all"}`])
	})
}
