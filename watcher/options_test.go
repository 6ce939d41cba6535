package watcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-safestore/kube-safestore/watcher"
)

func TestOptionsAreValidated(t *testing.T) {
	assert.NoError(t, watcher.Options{}.Validate())
	for field, o := range map[string]watcher.Options{
		"WatchTimeout is negative":         {WatchTimeout: -1},
		"WatchTimeout is under 1s":         {WatchTimeout: 999 * time.Millisecond},
		"MaxSilence is negative":           {MaxSilence: -1},
		"MaxSilence is under 1s":           {MaxSilence: 1},
		"MaxStaleness is negative":         {MaxStaleness: -1},
		"MaxStaleness is under 2s":         {MaxStaleness: time.Second},
		"MinVersion":                       {MinVersion: "0"},
		"RequestTimeout is negative":       {RequestTimeout: -1},
		"InitialEventsTimeout is negative": {InitialEventsTimeout: -1},
		"MinBackoff is negative":           {MinBackoff: -1},
		"MaxBackoff is negative":           {MaxBackoff: -1},
		"MinBackoff 1m0s is over":          {MinBackoff: time.Minute},
		"MinBackoff 2s is over":            {MinBackoff: 2 * time.Second, MaxBackoff: time.Second},
	} {
		assert.ErrorContains(t, o.Validate(), field)
		_, err := watcher.New(source(), &record{}, o)
		assert.ErrorContains(t, err, field)
	}
}

func source() watcher.Source {
	return watcher.ListWatch(fake.NewClientset().CoreV1().ConfigMaps(""))
}

func TestNilArguments(t *testing.T) {
	_, err := watcher.New(nil, &record{}, watcher.Options{})
	assert.ErrorContains(t, err, "source is nil")
	_, err = watcher.New((*nilSource)(nil), &record{}, watcher.Options{})
	assert.ErrorContains(t, err, "source is nil")
	_, err = watcher.New(source(), nil, watcher.Options{})
	assert.ErrorContains(t, err, "sink is nil")
	_, err = watcher.New(source(), (*record)(nil), watcher.Options{})
	assert.ErrorContains(t, err, "sink is nil")
}

type nilSource struct{ watcher.Source }

func TestStatusBeforeRun(t *testing.T) {
	w, err := watcher.New(source(), &record{}, watcher.Options{})
	require.NoError(t, err)
	assert.Empty(t, w.Status().Phase)
	w.Relist() // neither waits
	w.Relist()
	w.Prove()
}

func TestRunReturnsTheCause(t *testing.T) {
	w, err := watcher.New(source(), &record{}, watcher.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(assert.AnError)
	assert.ErrorIs(t, w.Run(ctx), assert.AnError)
}
