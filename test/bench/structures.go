package bench

import (
	"sync"
	"sync/atomic"

	"github.com/benbjohnson/immutable"
	"github.com/cilium/statedb/part"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/internal/trie"
)

// A structure is pods by key. One goroutine writes, and any number reads.

// structures are all of them, with the same pods.
type structures struct {
	trie      atomic.Pointer[trie.Map[names]]
	part      atomic.Pointer[part.Tree[*corev1.Pod]]
	immutable atomic.Pointer[immutable.Map[string, *corev1.Pod]]
	locked    lockedMap
	sync      *sync.Map
	indexer   cache.Indexer
}

func newStructures(pods []*corev1.Pod) *structures {
	s := &structures{}
	s.trie.Store(trieOf(pods))
	s.part.Store(partOf(pods))
	s.immutable.Store(immutableOf(pods))
	s.locked.pods = mapOf(pods)
	s.sync = syncMapOf(pods)
	s.indexer = indexerOf(pods)
	return s
}

// names are the pods of one namespace: SafeStore's sets are a trie of tries.
type names = trie.Map[*corev1.Pod]

func trieOf(pods []*corev1.Pod) *trie.Map[names] {
	open := map[string]*trie.Editor[*corev1.Pod]{}
	for _, pod := range pods {
		editor, ok := open[pod.Namespace]
		if !ok {
			editor = names{}.Edit()
			open[pod.Namespace] = editor
		}
		editor.Set(pod.Name, pod)
	}
	all := trie.Map[names]{}.Edit()
	for namespace, editor := range open {
		all.Set(namespace, editor.Map())
	}
	set := all.Map()
	return &set
}

func trieGet(set *trie.Map[names], k types.NamespacedName) (*corev1.Pod, bool) {
	in, _ := set.Get(k.Namespace)
	return in.Get(k.Name)
}

func trieWith(set *trie.Map[names], pod *corev1.Pod) *trie.Map[names] {
	in, _ := set.Get(pod.Namespace)
	one := in.Edit()
	one.Set(pod.Name, pod)
	all := set.Edit()
	all.Set(pod.Namespace, one.Map())
	next := all.Map()
	return &next
}

func partOf(pods []*corev1.Pod) *part.Tree[*corev1.Pod] {
	// Without a watch channel for each node, it is faster.
	txn := new(part.New[*corev1.Pod](part.RootOnlyWatch)).Txn()
	for _, pod := range pods {
		txn.Insert([]byte(pathOf(pod)), pod)
	}
	tree := txn.CommitAndNotify()
	return &tree
}

func partWith(tree *part.Tree[*corev1.Pod], key []byte, pod *corev1.Pod) *part.Tree[*corev1.Pod] {
	_, _, next := tree.Insert(key, pod)
	return &next
}

func immutableOf(pods []*corev1.Pod) *immutable.Map[string, *corev1.Pod] {
	builder := immutable.NewMapBuilder[string, *corev1.Pod](nil)
	for _, pod := range pods {
		builder.Set(pathOf(pod), pod)
	}
	return builder.Map()
}

// lockedMap is a Go map under a lock.
type lockedMap struct {
	mu   sync.RWMutex
	pods map[types.NamespacedName]*corev1.Pod
}

func (m *lockedMap) get(k types.NamespacedName) (*corev1.Pod, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	pod, ok := m.pods[k]
	return pod, ok
}

func (m *lockedMap) set(k types.NamespacedName, pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[k] = pod
}

func mapOf(pods []*corev1.Pod) map[types.NamespacedName]*corev1.Pod {
	m := make(map[types.NamespacedName]*corev1.Pod, len(pods))
	for _, pod := range pods {
		m[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	return m
}

func syncMapOf(pods []*corev1.Pod) *sync.Map {
	m := &sync.Map{}
	for _, pod := range pods {
		m.Store(pathOf(pod), pod)
	}
	return m
}

// indexerOf returns what is inside an informer.
func indexerOf(pods []*corev1.Pod) cache.Indexer {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, namespaceIndex())
	replaceAll(indexer, pods)
	return indexer
}

func replaceAll(indexer cache.Indexer, pods []*corev1.Pod) {
	list := make([]any, len(pods))
	for i, pod := range pods {
		list[i] = pod
	}
	_ = indexer.Replace(list, "") // it fails only with objects without metadata
}
