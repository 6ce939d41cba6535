package watcher_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// asked is a client that remembers what it was asked.
type asked struct{ list, watch metav1.ListOptions }

func (a *asked) List(_ context.Context, opts metav1.ListOptions) (*corev1.PodList, error) {
	a.list = opts
	return &corev1.PodList{}, nil
}

func (a *asked) Watch(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	a.watch = opts
	return watch.NewEmptyWatch(), nil
}

func TestSelectors(t *testing.T) {
	shop := labels.SelectorFromSet(labels.Set{"app": "shop"})
	node := fields.OneTermEqualSelector("spec.nodeName", "n1")
	fromNil, err := metav1.LabelSelectorAsSelector(nil)
	require.NoError(t, err)
	by := func(modify ...func(*metav1.ListOptions)) []func(*metav1.ListOptions) { return modify }
	for name, test := range map[string]struct {
		modify         []func(*metav1.ListOptions)
		labels, fields string
	}{
		"none":                                   {nil, "", ""},
		"labels":                                 {by(watcher.WithLabelSelector(shop)), "app=shop", ""},
		"fields":                                 {by(watcher.WithFieldSelector(node)), "", "spec.nodeName=n1"},
		"both":                                   {by(watcher.WithFieldSelector(node), watcher.WithLabelSelector(shop)), "app=shop", "spec.nodeName=n1"},
		"nil":                                    {by(watcher.WithLabelSelector(nil), watcher.WithFieldSelector(nil)), "", ""},
		"everything":                             {by(watcher.WithLabelSelector(labels.Everything()), watcher.WithFieldSelector(fields.Everything())), "", ""},
		"nothing, labels":                        {by(watcher.WithLabelSelector(labels.Nothing())), "none,!none", ""},
		"nothing, fields":                        {by(watcher.WithFieldSelector(fields.Nothing())), "", "metadata.name=none,metadata.name!=none"},
		"a nil selector, as apimachinery has it": {by(watcher.WithLabelSelector(fromNil)), "none,!none", ""},
		"several": {by(
			watcher.WithLabelSelector(shop), watcher.WithLabelSelector(nil), watcher.WithLabelSelector(labels.Everything()),
			watcher.WithLabelSelector(labels.SelectorFromSet(labels.Set{"tier": "web"})),
			func(opts *metav1.ListOptions) { opts.FieldSelector = "metadata.name=a" }, watcher.WithFieldSelector(node),
		), "app=shop,tier=web", "metadata.name=a,spec.nodeName=n1"},
	} {
		t.Run(name, func(t *testing.T) {
			client := &asked{}
			source := watcher.ListWatch(client, test.modify...)
			opts := metav1.ListOptions{ResourceVersion: "7", Limit: 3, AllowWatchBookmarks: true}
			for range 2 { // a request adds nothing to the next one
				_, err := source.ListWithContext(t.Context(), opts)
				require.NoError(t, err)
				_, err = source.WatchWithContext(t.Context(), opts)
				require.NoError(t, err)
				want := opts
				want.LabelSelector, want.FieldSelector = test.labels, test.fields
				assert.Equal(t, want, client.list)
				assert.Equal(t, want, client.watch)
			}
		})
	}
}

// What stands in for nothing is what it says, as far as apimachinery knows.
func TestContradictionsMatchNothing(t *testing.T) {
	var opts metav1.ListOptions
	watcher.WithLabelSelector(labels.Nothing())(&opts)
	watcher.WithFieldSelector(fields.Nothing())(&opts)
	byLabels, err := labels.Parse(opts.LabelSelector)
	require.NoError(t, err)
	byFields, err := fields.ParseSelector(opts.FieldSelector)
	require.NoError(t, err)
	for _, value := range []string{"", "none", "other"} {
		assert.False(t, byLabels.Matches(labels.Set{"none": value}))
		assert.False(t, byFields.Matches(fields.Set{"metadata.name": value}))
	}
	assert.False(t, byLabels.Matches(labels.Set{}))
}
