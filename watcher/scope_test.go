package watcher_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/kube-safestore/kube-safestore/watcher"
)

// A source knows the namespace of each kind of client that client-go makes. It fails
// if client-go renames what tells: the stores of such clients would then call absent
// what is in other namespaces.
func TestScopeOfClients(t *testing.T) {
	config := &rest.Config{Host: "http://localhost"}
	typed := kubernetes.NewForConfigOrDie(config).CoreV1()
	untyped := dynamic.NewForConfigOrDie(config).Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	meta := metadata.NewForConfigOrDie(config).Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	fakes := fake.NewClientset().CoreV1()
	untypedFake := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()).Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	metaFake := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()).Resource(corev1.SchemeGroupVersion.WithResource("pods"))

	for name, tc := range map[string]struct {
		source watcher.Source
		want   string
	}{
		"typed":             {watcher.ListWatch(typed.Pods("team-a")), "team-a"},
		"typed, all":        {watcher.ListWatch(typed.Pods("")), ""},
		"typed, cluster":    {watcher.ListWatch(typed.Nodes()), ""},
		"dynamic":           {watcher.ListWatch(untyped.Namespace("team-a")), "team-a"},
		"dynamic, all":      {watcher.ListWatch(untyped), ""},
		"metadata":          {watcher.ListWatch(meta.Namespace("team-a")), "team-a"},
		"metadata, all":     {watcher.ListWatch(meta), ""},
		"typed fake":        {watcher.ListWatch(fakes.Pods("team-a")), "team-a"},
		"typed fake, all":   {watcher.ListWatch(fakes.Pods("")), ""},
		"dynamic fake":      {watcher.ListWatch(untypedFake.Namespace("team-a")), "team-a"},
		"metadata fake":     {watcher.ListWatch(metaFake.Namespace("team-a")), "team-a"},
		"somebody's own":    {watcher.ListWatch(&asked{}), ""},
		"that says nothing": {&cache.ListWatch{}, ""},
		"that is told":      {watcher.InNamespace("team-a", &cache.ListWatch{}), "team-a"},
		"that is told no more": {
			watcher.InNamespace("", watcher.ListWatch(typed.Pods("team-a"))), "team-a",
		},
		"that is told the same": {
			watcher.InNamespace("team-a", watcher.ListWatch(typed.Pods("team-a"))), "team-a",
		},
		"none": {nil, ""},
	} {
		assert.Equal(t, watcher.Scope{Namespace: tc.want}, watcher.ScopeOf(tc.source), name)
	}
	assert.PanicsWithValue(t, `watcher: InNamespace("team-b") of a source that lists namespace "team-a"`, func() {
		watcher.InNamespace("team-b", watcher.ListWatch(typed.Pods("team-a")))
	})
	assert.Nil(t, watcher.InNamespace("team-a", nil), "for New to refuse")
}

// A source knows what it asks the server to select, by whichever function.
func TestScopeOfSelectors(t *testing.T) {
	source := watcher.ListWatch(fake.NewClientset().CoreV1().Pods("team-a"),
		watcher.WithLabelSelector(labels.SelectorFromSet(labels.Set{"app": "shop"})),
		watcher.WithFieldSelector(fields.OneTermEqualSelector("spec.nodeName", "n1")),
		func(o *metav1.ListOptions) { o.LabelSelector += ",tier=web" })
	want := watcher.Scope{Namespace: "team-a", LabelSelector: "app=shop,tier=web", FieldSelector: "spec.nodeName=n1"}
	for range 2 {
		assert.Equal(t, want, watcher.ScopeOf(source), "asking changes nothing")
	}
	assert.Equal(t, `namespace "team-a", labels app=shop,tier=web, fields spec.nodeName=n1`, want.String())
	assert.Equal(t, "everything", watcher.Scope{}.String())
}

// What a source says about WatchList is not lost by saying its namespace.
func TestInNamespaceKeepsWhatTheSourceSays(t *testing.T) {
	for _, unsupported := range []bool{false, true} {
		source := watcher.InNamespace("team-a", &saying{unsupported: unsupported})
		assert.Equal(t, unsupported, watchlist.DoesClientNotSupportWatchListSemantics(source))
	}
}

type saying struct {
	cache.ListWatch
	unsupported bool
}

func (s *saying) IsWatchListSemanticsUnSupported() bool { return s.unsupported }
