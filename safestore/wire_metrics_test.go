package safestore_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// metrics are the values of the store's metrics that are not zero, but for those
// of how long things took; those with one label by name alone.
func (w *wire) metrics() map[string]float64 {
	synctest.Wait()
	all := map[string]float64{}
	for s := range safestore.Samples(w.store) {
		if s.Value != 0 {
			all[strings.Join(append([]string{s.Metric}, s.Labels[1:]...), " ")] = s.Value
		}
	}
	return all
}

func TestMetricsOfALife(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		assert.Equal(t, map[string]float64{"safestore_generation": 1}, w.metrics(), "before Run")
		w.maps.Set(configMap("a", "1"))
		w.maps.Set(configMap("b", "1"))
		w.ready()
		want := map[string]float64{
			"safestore_ready": 1, "safestore_generation": 1, "safestore_objects": 2,
			"safestore_lists_total": 1, "safestore_syncs_total": 1, "safestore_watches_total": 1,
		}
		assert.Equal(t, want, w.metrics())

		require.NoError(t, w.store.Sync(t.Context()))
		after(9 * time.Second)
		want["safestore_proofs_asked_total"], want["safestore_proofs_total succeeded"] = 1, 1
		want["safestore_staleness_seconds"], want["safestore_silence_seconds"] = 9, 9
		assert.Equal(t, want, w.metrics(), "proven, and quiet since")

		hanging := w.Break(wiretest.All, wiretest.Hang)
		assert.True(t, w.store.Revoke(w.store.Token(), nil))
		after(time.Second)
		got := w.metrics()
		assert.NotContains(t, got, "safestore_ready")
		assert.EqualValues(t, 2, got["safestore_generation"])
		assert.EqualValues(t, 1, got["safestore_revocations_total Requested"])
		assert.EqualValues(t, 1, got["safestore_relists_total"])
		assert.EqualValues(t, 10, got["safestore_staleness_seconds"], "of what there is")
		hanging()
		w.readyAfter(0, time.Minute)

		w.Break(wiretest.All, wiretest.Answer(forbidden()))
		w.End()
		after(time.Minute)
		got = w.metrics()
		assert.EqualValues(t, 1, got["safestore_revocations_total Forbidden"])
		assert.Greater(t, got["safestore_failures_total"], 1.)
		assert.NotContains(t, got, "safestore_objects", "dropped")
		assert.NotContains(t, got, "safestore_staleness_seconds", "there is nothing that could be stale")

		w.stop(nil)
		<-w.done
		assert.EqualValues(t, 1, w.metrics()["safestore_revocations_total Closed"])
	})
}

func TestMetricsOfEvents(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.ready()
		for i := range 7 {
			w.maps.Set(configMap(fmt.Sprint("map-", i), "1"))
		}
		synctest.Wait()
		for s := range safestore.Samples(w.store) {
			if s.Metric == "safestore_apply_duration_seconds" {
				assert.EqualValues(t, 7, s.Durations.Count())
				return
			}
		}
		require.Fail(t, "no durations")
	})
}

func TestMetricsOfSubscriptions(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.ready()
		blocked := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, name := range []string{"same", "same"} {
			go w.store.Subscribe(name).Handle(ctx, func(c safestore.Change[*corev1.ConfigMap]) error {
				if c.Type == safestore.Added {
					<-blocked
				}
				return nil
			})
		}
		w.maps.Set(configMap("a", "1"))
		after(3 * time.Second)
		got := w.metrics()
		assert.EqualValues(t, 3, got["safestore_subscription_lag_seconds same"])
		assert.EqualValues(t, 3, got["safestore_subscription_lag_seconds same#2"])
		assert.NotContains(t, got, "safestore_subscription_changes_total same")
		close(blocked)
		got = w.metrics()
		assert.NotContains(t, got, "safestore_subscription_lag_seconds same")
		assert.EqualValues(t, 1, got["safestore_subscription_changes_total same"])
	})
}

// Those who wait for a long sync are told how far it is.
func TestErrorsSayHowFarTheSyncIs(t *testing.T) {
	onWire(t, watchOptions(watcher.Options{PageSize: 20}), func(t *testing.T, w *wire) {
		w.Break(wiretest.Initial, wiretest.Answer(wiretest.NoWatchList()))
		w.Break(wiretest.Later, wiretest.Slow(5*time.Second))
		for i := range 100 {
			w.maps.Set(configMap(fmt.Sprint("map-", i), "1"))
		}
		w.run()
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		_, err := w.store.WaitReady(ctx)
		assert.ErrorContains(t, err, "; listing, 60 of about 100 objects, 8s left; gave up waiting: context deadline exceeded")
		e := w.notReady()
		assert.EqualValues(t, 60, e.Progress.Objects)
		assert.EqualValues(t, 100, e.Progress.Total)
		assert.Equal(t, w.store.Status().Watch.Progress, e.Progress)

		group, err := safestore.NewGroup("all", w.store)
		require.NoError(t, err)
		assert.ErrorContains(t, group.NotReady(), "listing, 60 of about 100 objects, 8s left")
		group.Close()
	})
}

// lines is what was logged. Clients log as well, in goroutines of their own.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// logTo returns a context with a log that goes there.
func logTo(ctx context.Context, log *lines, verbosity int) context.Context {
	return klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(
		textlogger.Output(log), textlogger.Verbosity(verbosity))))
}

// said is what was logged since the last call, without headers.
func (l *lines) said() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for line := range strings.Lines(l.all.String()) {
		_, text, _ := strings.Cut(line, "] ")
		all = append(all, strings.TrimSpace(text))
	}
	l.all.Reset()
	return all
}

// At the default verbosity a store logs one line for each transition, in the log
// that Run's context has, and none for events, bookmarks, proofs and what is
// resumed.
func TestLogHasOneLineForEachTransition(t *testing.T) {
	onWire(t, safestore.Options{Name: "maps", MaxStaleness: time.Minute}, func(t *testing.T, w *wire) {
		var log lines
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.FromContext(logTo(t.Context(), &log, 0)).WithValues("of", "me")))
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- w.store.Run(ctx) }()
		tok := w.readyAfter(0, 0)
		assert.Equal(t, []string{
			`"Store is ready" of="me" store="maps" generation=1 objects=0 resourceVersion="1000"`,
		}, log.said())

		for i := range 1000 {
			w.maps.Set(configMap(fmt.Sprint("map-", i%100), fmt.Sprint("value ", i)))
			if i%100 == 99 {
				w.End()
				after(time.Minute)
			}
		}
		w.same()
		require.Equal(t, token.Ready, tok.State())
		assert.Empty(t, log.said(), "events, bookmarks, proofs, watches that end")

		heal := w.Break(wiretest.All, wiretest.Answer(forbidden()))
		w.Cut()
		w.ended(tok, time.Minute)
		after(10 * time.Minute)
		assert.Equal(t, []string{
			`"Store is not ready" of="me" store="maps" generation=1 reason="Forbidden" ` +
				`cause="watch: configmaps is forbidden: User \"app\" cannot list resource \"configmaps\" in API group \"\"" resourceVersion="2000"`,
		}, leaveOut("Still syncing", log.said()), "however often it is refused")
		heal()
		w.readyAfter(0, time.Minute)
		assert.Equal(t, []string{
			`"Store is ready" of="me" store="maps" generation=2 objects=100 resourceVersion="2000"`,
		}, leaveOut("Still syncing", log.said()))
		cancel()
		require.NoError(t, <-done)
		assert.Equal(t, []string{
			`"Store is not ready" of="me" store="maps" generation=2 reason="Closed" cause="context canceled" resourceVersion="2000"`,
		}, log.said())
	})
}

func leaveOut(text string, lines []string) (rest []string) {
	for _, line := range lines {
		if !strings.Contains(line, text) {
			rest = append(rest, line)
		}
	}
	return rest
}

// No more is logged for events at any verbosity, and never what they hold.
func TestLogDoesNotHoldContents(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		var log lines
		go w.store.Run(logTo(t.Context(), &log, 10))
		w.readyAfter(0, 0)
		for i := range 100 {
			w.maps.Set(configMap("a", fmt.Sprint("hunter", i)))
		}
		w.same()
		w.Send(wiretest.Frame("MODIFIED", secretly("hunter")))
		after(time.Minute)
		all := log.said()
		assert.NotContains(t, strings.Join(all, "\n"), "hunter")
		assert.Less(t, len(all), 20)
		assert.Positive(t, w.store.Status().Revocations[invalidation.BadData])
	})
}

// secretly is an object that cannot be decoded as a ConfigMap.
func secretly(value string) any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": value}
}
