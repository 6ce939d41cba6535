package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-safestore/kube-safestore/safestore"
)

// A read that does not find what it should is an error: what is fast and wrong is
// not compared. The pod itself is not looked into, which would cost all the same.

func found(pod *corev1.Pod, ok bool, k *key) error {
	if !ok || pod == nil {
		return fmt.Errorf("%s was not found", k.path)
	}
	return nil
}

func notFound(err error, k *key) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: not found was expected, not %w", k.path, err)
	}
	return nil
}

func absent(ok bool, k *key) error {
	if ok {
		return fmt.Errorf("%s was found", k.path)
	}
	return nil
}

func counted(got, want int) error {
	if got != want {
		return fmt.Errorf("%d pods, not %d", got, want)
	}
	return nil
}

// uncopied makes controller-runtime hand out what it holds, as the others do.
var uncopied = client.UnsafeDisableDeepCopy

func (s *Suite) get() Operation {
	ctx := context.Background()
	read := func(reader client.Reader, k *key, opts ...client.GetOption) error {
		var pod corev1.Pod
		if err := reader.Get(ctx, k.name, &pod, opts...); err != nil {
			return err
		}
		return found(&pod, true, k)
	}
	return Operation{Name: "get one", Units: []string{nsPerOp}, Contenders: []Contender{
		each("SafeStore Store.Get", s.store, s.keys, func(store *podStore, k *key) error {
			pod, err := store.Get(ctx, k.name)
			return found(pod, err == nil, k)
		}),
		each("SafeStore Snapshot.Get", s.snapshot, s.keys, func(snapshot *podSnapshot, k *key) error {
			pod, err := snapshot.Get(k.name)
			return found(pod, err == nil, k)
		}),
		each("client-go lister", s.lister, s.keys, func(lister corelisters.PodLister, k *key) error {
			pod, err := lister.Pods(k.name.Namespace).Get(k.name.Name)
			return found(pod, err == nil, k)
		}),
		each("client-go GetByKey", s.indexer, s.keys, func(indexer cache.Indexer, k *key) error {
			obj, ok, _ := indexer.GetByKey(k.path)
			pod, _ := obj.(*corev1.Pod)
			return found(pod, ok, k)
		}),
		each("controller-runtime", s.reader, s.keys, func(reader client.Reader, k *key) error { return read(reader, k) }),
		each("controller-runtime, uncopied", s.reader, s.keys, func(reader client.Reader, k *key) error { return read(reader, k, uncopied) }),
		each("structure: our trie", s.structures, s.keys, func(peers *structures, k *key) error {
			pod, ok := trieGet(peers.trie.Load(), k.name)
			return found(pod, ok, k)
		}),
		each("structure: statedb part", s.structures, s.keys, func(peers *structures, k *key) error {
			pod, ok := peers.part.Load().Get(k.bytes)
			return found(pod, ok, k)
		}),
		each("structure: immutable", s.structures, s.keys, func(peers *structures, k *key) error {
			pod, ok := peers.immutable.Load().Get(k.path)
			return found(pod, ok, k)
		}),
		each("structure: Go map, RWMutex", s.structures, s.keys, func(peers *structures, k *key) error {
			pod, ok := peers.locked.get(k.name)
			return found(pod, ok, k)
		}),
		each("structure: sync.Map", s.structures, s.keys, func(peers *structures, k *key) error {
			obj, ok := peers.sync.Load(k.path)
			pod, _ := obj.(*corev1.Pod)
			return found(pod, ok, k)
		}),
	}}
}

func (s *Suite) getMissing() Operation {
	ctx := context.Background()
	return Operation{Name: "get one that is missing", Units: []string{nsPerOp}, Contenders: []Contender{
		each("SafeStore Store.Get", s.store, s.missing, func(store *podStore, k *key) error {
			_, err := store.Get(ctx, k.name)
			return notFound(err, k)
		}),
		each("SafeStore Snapshot.Get", s.snapshot, s.missing, func(snapshot *podSnapshot, k *key) error {
			_, err := snapshot.Get(k.name)
			return notFound(err, k)
		}),
		each("client-go lister", s.lister, s.missing, func(lister corelisters.PodLister, k *key) error {
			_, err := lister.Pods(k.name.Namespace).Get(k.name.Name)
			return notFound(err, k)
		}),
		each("client-go GetByKey", s.indexer, s.missing, func(indexer cache.Indexer, k *key) error {
			_, ok, _ := indexer.GetByKey(k.path)
			return absent(ok, k)
		}),
		each("controller-runtime", s.reader, s.missing, func(reader client.Reader, k *key) error {
			return notFound(reader.Get(ctx, k.name, &corev1.Pod{}), k)
		}),
		each("structure: our trie", s.structures, s.missing, func(peers *structures, k *key) error {
			_, ok := trieGet(peers.trie.Load(), k.name)
			return absent(ok, k)
		}),
		each("structure: statedb part", s.structures, s.missing, func(peers *structures, k *key) error {
			_, ok := peers.part.Load().Get(k.bytes)
			return absent(ok, k)
		}),
		each("structure: immutable", s.structures, s.missing, func(peers *structures, k *key) error {
			_, ok := peers.immutable.Load().Get(k.path)
			return absent(ok, k)
		}),
		each("structure: Go map, RWMutex", s.structures, s.missing, func(peers *structures, k *key) error {
			_, ok := peers.locked.get(k.name)
			return absent(ok, k)
		}),
		each("structure: sync.Map", s.structures, s.missing, func(peers *structures, k *key) error {
			_, ok := peers.sync.Load(k.path)
			return absent(ok, k)
		}),
	}}
}

// listNamespace leaves out the structures that would have to look at all pods.
func (s *Suite) listNamespace() Operation {
	ctx := context.Background()
	return Operation{Name: "list a namespace of 100", Units: []string{nsPerOp}, Contenders: []Contender{
		each("SafeStore Store.List", s.store, s.keys, func(store *podStore, k *key) error {
			pods, _ := store.List(ctx, safestore.InNamespace(k.name.Namespace))
			return counted(len(pods), perNamespace)
		}),
		each("client-go lister", s.lister, s.keys, func(lister corelisters.PodLister, k *key) error {
			pods, _ := lister.Pods(k.name.Namespace).List(labels.Everything())
			return counted(len(pods), perNamespace)
		}),
		each("client-go ByIndex", s.indexer, s.keys, func(indexer cache.Indexer, k *key) error {
			pods, _ := indexer.ByIndex(cache.NamespaceIndex, k.name.Namespace)
			return counted(len(pods), perNamespace)
		}),
		each("controller-runtime", s.reader, s.keys, func(reader client.Reader, k *key) error {
			return list(ctx, reader, perNamespace, client.InNamespace(k.name.Namespace))
		}),
		each("controller-runtime, uncopied", s.reader, s.keys, func(reader client.Reader, k *key) error {
			return list(ctx, reader, perNamespace, client.InNamespace(k.name.Namespace), uncopied)
		}),
		each("structure: our trie", s.structures, s.keys, func(peers *structures, k *key) error {
			n := 0
			in, _ := peers.trie.Load().Get(k.name.Namespace)
			for range in.All() {
				n++
			}
			return counted(n, perNamespace)
		}),
		each("structure: statedb part", s.structures, s.keys, func(peers *structures, k *key) error {
			n := 0
			pods := peers.part.Load().Prefix(k.bytes[:len(k.name.Namespace)+1])
			for _, _, ok := pods.Next(); ok; _, _, ok = pods.Next() {
				n++
			}
			return counted(n, perNamespace)
		}),
	}}
}

// list lists with controller-runtime.
func list(ctx context.Context, reader client.Reader, want int, opts ...client.ListOption) error {
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, opts...); err != nil {
		return err
	}
	return counted(len(pods.Items), want)
}

func (s *Suite) listByIndex() Operation {
	ctx := context.Background()
	type node struct {
		name string
		pods int
	}
	onNode := map[string]int{}
	for _, pod := range s.pods {
		onNode[pod.Spec.NodeName]++
	}
	var nodes []node
	for name, pods := range onNode {
		nodes = append(nodes, node{name, pods})
	}
	return Operation{Name: "list 100 by an index", Units: []string{nsPerOp}, Contenders: []Contender{
		each("SafeStore Store.List", s.store, nodes, func(store *podStore, n *node) error {
			pods, _ := store.List(ctx, safestore.ByIndex(nodeIndex, n.name))
			return counted(len(pods), n.pods)
		}),
		each("client-go ByIndex", s.indexer, nodes, func(indexer cache.Indexer, n *node) error {
			pods, _ := indexer.ByIndex(nodeIndex, n.name)
			return counted(len(pods), n.pods)
		}),
		each("controller-runtime", s.reader, nodes, func(reader client.Reader, n *node) error {
			return list(ctx, reader, n.pods, client.MatchingFields{nodeIndex: n.name})
		}),
		each("controller-runtime, uncopied", s.reader, nodes, func(reader client.Reader, n *node) error {
			return list(ctx, reader, n.pods, client.MatchingFields{nodeIndex: n.name}, uncopied)
		}),
	}}
}

func (s *Suite) listByLabel() Operation {
	ctx := context.Background()
	values := []string{"app-42", "app-07", "app-99"}
	want := len(s.pods) / apps
	return Operation{Name: "list by a label, 1 % of all", Units: []string{nsPerOp}, Contenders: []Contender{
		each("SafeStore Store.List", s.store, values, func(store *podStore, value *string) error {
			pods, _ := store.List(ctx, safestore.MatchingLabels(map[string]string{appLabel: *value}))
			return counted(len(pods), want)
		}),
		each("client-go lister", s.lister, values, func(lister corelisters.PodLister, value *string) error {
			pods, _ := lister.List(labels.SelectorFromSet(labels.Set{appLabel: *value}))
			return counted(len(pods), want)
		}),
		each("controller-runtime, uncopied", s.reader, values, func(reader client.Reader, value *string) error {
			return list(ctx, reader, want, client.MatchingLabels{appLabel: *value}, uncopied)
		}),
	}}
}
