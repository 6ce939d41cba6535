package clientgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// somePods are in namespaces and in none, on nodes and on none.
func somePods() []*corev1.Pod {
	return []*corev1.Pod{
		pod("shop", "cart", "n1", "data", "logs"), pod("shop", "checkout", "n2", "logs"),
		pod("mail", "sender", "n1", "data"), pod("mail", "cart", ""), pod("", "static", "n2", "data", "logs"),
	}
}

// A ready store answers every question as client-go's own cache does that holds
// the same objects.
func TestAnswersAsClientGo(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		theirs := cache.NewIndexer(cache.MetaNamespaceKeyFunc, w.indexer.GetIndexers())
		for _, p := range somePods() {
			w.pods.Set(p)
			require.NoError(t, theirs.Add(p))
		}
		w.run()
		for name, ask := range questions(somePods()) {
			assert.Equal(t, ask(theirs), ask(w.indexer), name)
		}
		assert.Equal(t, fmt.Sprint(w.Version()), w.indexer.LastStoreSyncResourceVersion())
	})
}

// questions are all that can be asked, with answers as text.
func questions(pods []*corev1.Pod) map[string]func(cache.Indexer) string {
	all := map[string]func(cache.Indexer) string{
		"List":     func(i cache.Indexer) string { return keysOf(i.List()) },
		"ListKeys": func(i cache.Indexer) string { return sorted(i.ListKeys()) },
		"Resync":   func(i cache.Indexer) string { return fmt.Sprint(i.Resync()) },
		"GetIndexers": func(i cache.Indexer) string {
			var names []string
			for name := range i.GetIndexers() {
				names = append(names, name)
			}
			return sorted(names)
		},
	}
	one := func(item any, exists bool, err error) string {
		if item == nil {
			return fmt.Sprint(exists, err)
		}
		return fmt.Sprint(keysOf([]any{item}), exists, err)
	}
	for _, key := range []string{
		"shop/cart", "mail/cart", "static", "/static", "cart", "shop/gift", "shop", "shop/", "", "/", "a/b/c", "shop/cart/x",
	} {
		all["GetByKey "+key] = func(i cache.Indexer) string { return one(i.GetByKey(key)) }
		all["Get "+key] = func(i cache.Indexer) string { return one(i.Get(cache.ExplicitKey(key))) }
	}
	for _, p := range append(pods, pod("shop", "gift", "n3", "logs", "data", "x")) {
		all[fmt.Sprintf("Get %s/%s", p.Namespace, p.Name)] = func(i cache.Indexer) string { return one(i.Get(p)) }
		for _, index := range []string{cache.NamespaceIndex, "node", "volume"} {
			all[fmt.Sprintf("Index %s %s/%s", index, p.Namespace, p.Name)] = func(i cache.Indexer) string {
				found, err := i.Index(index, p)
				return fmt.Sprint(keysOf(found), err)
			}
		}
	}
	for _, namespace := range []string{"shop", "", "none"} {
		all["Index of a namespace: "+namespace] = func(i cache.Indexer) string {
			found, err := i.Index(cache.NamespaceIndex, &metav1.ObjectMeta{Namespace: namespace})
			return fmt.Sprint(keysOf(found), err)
		}
	}
	for _, index := range []string{cache.NamespaceIndex, "node", "volume"} {
		all["ListIndexFuncValues "+index] = func(i cache.Indexer) string { return sorted(i.ListIndexFuncValues(index)) }
		for _, value := range []string{"", "shop", "mail", "n1", "n2", "data", "logs", "none"} {
			all["ByIndex "+index+" "+value] = func(i cache.Indexer) string {
				found, err := i.ByIndex(index, value)
				return fmt.Sprint(keysOf(found), err)
			}
			all["IndexKeys "+index+" "+value] = func(i cache.Indexer) string {
				found, err := i.IndexKeys(index, value)
				return fmt.Sprint(sorted(found), err)
			}
		}
	}
	return all
}

func keysOf(list []any) string {
	var keys []string
	for _, obj := range list {
		m, err := meta.Accessor(obj)
		if err != nil {
			return err.Error()
		}
		keys = append(keys, cache.MetaObjectToName(m).String())
	}
	return sorted(keys)
}

func sorted(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return fmt.Sprintf("%q", list)
}

// The functions in GetIndexers are those of the store, and their map is a copy.
func TestGetIndexers(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		indexers := w.indexer.GetIndexers()
		values, err := indexers["volume"](pod("a", "b", "n", "x", "y"))
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "y"}, values)
		_, err = indexers["volume"](&corev1.Secret{StringData: map[string]string{"key": "value"}})
		assert.EqualError(t, err, `clientgo: index "volume" of v1.Pod: an object of type *v1.Secret`)
		clear(indexers)
		assert.Len(t, w.indexer.GetIndexers(), 3)
	})
}

// A store's own index of that name does not take the namespaces away from listers.
func TestNamespaceIndexIsOfNamespaces(t *testing.T) {
	client := fake.NewClientset(pod("shop", "cart", "n1"))
	store, err := safestore.New(watcher.ListWatch(client.CoreV1().Pods("")), safestore.Options{},
		safestore.WithIndex(cache.NamespaceIndex, byNode))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	_, err = store.WaitReady(ctx)
	require.NoError(t, err)
	found, err := clientgo.Indexer(ctx, store).ByIndex(cache.NamespaceIndex, "shop")
	assert.NoError(t, err)
	assert.Len(t, found, 1)
	cancel()
	assert.NoError(t, <-done)
}

func TestObjectsAreShared(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		w.run()
		item, exists, err := w.indexer.GetByKey("shop/cart")
		require.NoError(t, err)
		require.True(t, exists)
		assert.Same(t, item, w.indexer.List()[0])
		found, err := w.indexer.ByIndex("node", "n1")
		require.NoError(t, err)
		assert.Same(t, item, found[0])
	})
}

// failing are the methods with an error, as one.
var failing = map[string]func(cache.Indexer) (any, error){
	"GetByKey": func(i cache.Indexer) (any, error) {
		item, exists, err := i.GetByKey("shop/cart")
		return answer(item, exists), err
	},
	"GetByKey of no object": func(i cache.Indexer) (any, error) {
		item, exists, err := i.GetByKey("a/b/c")
		return answer(item, exists), err
	},
	"Get": func(i cache.Indexer) (any, error) {
		item, exists, err := i.Get(pod("shop", "cart", ""))
		return answer(item, exists), err
	},
	"Index": func(i cache.Indexer) (any, error) {
		list, err := i.Index("node", pod("", "", "n1"))
		return answer(list, list != nil), err
	},
	"Index of no value": func(i cache.Indexer) (any, error) {
		list, err := i.Index("node", pod("", "", ""))
		return answer(list, list != nil), err
	},
	"Index of namespaces": func(i cache.Indexer) (any, error) {
		list, err := i.Index(cache.NamespaceIndex, &metav1.ObjectMeta{Namespace: "shop"})
		return answer(list, list != nil), err
	},
	"ByIndex": func(i cache.Indexer) (any, error) {
		list, err := i.ByIndex("node", "n1")
		return answer(list, list != nil), err
	},
	"IndexKeys": func(i cache.Indexer) (any, error) {
		list, err := i.IndexKeys("node", "n1")
		return answer(list, list != nil), err
	},
}

func answer(item any, exists bool) any {
	if !exists {
		return nil
	}
	return item
}

// What can fail does so at once, and nothing is ever absent because the store is
// not ready.
func TestNotReadyIsAnError(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		all := func(reason error) {
			t.Helper()
			for name, ask := range failing {
				item, err := ask(w.indexer)
				assert.ErrorIs(t, err, safestore.ErrNotReady, name)
				assert.ErrorIs(t, err, reason, name)
				assert.False(t, apierrors.IsNotFound(err), name)
				assert.Nil(t, item, name)
				_, ok := err.(*safestore.NotReadyError)
				assert.True(t, ok, "%s: not wrapped: listers hand it on as it is", name)
			}
			assert.Empty(t, w.indexer.LastStoreSyncResourceVersion())
		}
		all(safestore.ErrNotStarted)
		grant := w.refused()
		all(invalidation.Forbidden)
		_, _, err := w.indexer.GetByKey("shop/cart")
		assert.True(t, apierrors.IsForbidden(err), "what the server said is in it: %v", err)
		grant()
		for name, ask := range failing {
			_, err := ask(w.indexer)
			assert.NoError(t, err, name)
		}
		w.stop(nil)
		synctest.Wait()
		all(invalidation.Closed)
	})
}

func TestUnknownIndex(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		const want = `clientgo: no index "x": v1.Pod has "namespace", "node", "volume"`
		check := func() {
			t.Helper()
			_, err := w.indexer.Index("x", pod("", "", ""))
			assert.EqualError(t, err, want)
			_, err = w.indexer.ByIndex("x", "")
			assert.EqualError(t, err, want)
			_, err = w.indexer.IndexKeys("x", "")
			assert.EqualError(t, err, want)
			assert.PanicsWithError(t, want, func() { w.indexer.ListIndexFuncValues("x") })
		}
		check() // it is wrong, ready or not
		w.run()
		check()
	})
}

func TestIndexOfAnotherType(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.run()
		_, err := w.indexer.Index("node", &metav1.ObjectMeta{Namespace: "shop"})
		assert.EqualError(t, err, `clientgo: index "node" of v1.Pod: an object of type *v1.ObjectMeta`)
		_, err = w.indexer.Index(cache.NamespaceIndex, 7)
		assert.ErrorContains(t, err, "object has no meta")
	})
}

// The object that has no key may be a secret.
func TestGetWithoutKey(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.run()
		type secret struct{ value string }
		_, exists, err := w.indexer.Get(secret{"hidden"})
		assert.False(t, exists)
		assert.ErrorContains(t, err, "clientgo: clientgo_test.secret has no key")
		assert.NotContains(t, err.Error(), "hidden")
	})
}

func TestGetOfATombstone(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		w.run()
		_, exists, err := w.indexer.Get(cache.DeletedFinalStateUnknown{Key: "shop/cart"})
		assert.NoError(t, err)
		assert.True(t, exists)
	})
}

func TestWritesFail(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		w.run()
		other := pod("shop", "other", "n1")
		for want, err := range map[string]error{
			"clientgo: Add on v1.Pod: a store is written by its watch alone":     w.indexer.Add(other),
			"clientgo: Update on v1.Pod: a store is written by its watch alone":  w.indexer.Update(other),
			"clientgo: Delete on v1.Pod: a store is written by its watch alone":  w.indexer.Delete(pod("shop", "cart", "")),
			"clientgo: Replace on v1.Pod: a store is written by its watch alone": w.indexer.Replace([]any{other}, "7"),
			"clientgo: AddIndexers on v1.Pod: a store is written by its watch alone; its indexes are declared with safestore.New": w.indexer.AddIndexers(
				cache.Indexers{"x": cache.MetaNamespaceIndexFunc}),
		} {
			assert.EqualError(t, err, want)
			assert.ErrorIs(t, err, clientgo.ErrReadOnly)
		}
		assert.PanicsWithError(t, "clientgo: Bookmark on v1.Pod: a store is written by its watch alone",
			func() { w.indexer.Bookmark("7") })
		assert.Equal(t, []string{"shop/cart"}, w.indexer.ListKeys())
		assert.Len(t, w.indexer.GetIndexers(), 3)
		assert.Equal(t, fmt.Sprint(w.Version()), w.indexer.LastStoreSyncResourceVersion())
	})
}

func TestIndexerPanicsOnNil(t *testing.T) {
	store, err := safestore.New[*corev1.Pod](watcher.ListWatch(fake.NewClientset().CoreV1().Pods("")), safestore.Options{})
	require.NoError(t, err)
	assert.PanicsWithValue(t, "clientgo: Indexer with a nil store", func() { clientgo.Indexer[*corev1.Pod](t.Context(), nil) })
	var none context.Context
	assert.PanicsWithValue(t, "clientgo: Indexer with a nil context", func() { clientgo.Indexer(none, store) })
}

// Of an object that stops matching a selector a server says that it is deleted:
// kube-apiserver with its last state that matched, others with the one that does
// not. It is gone by its key and from all indexes, old values and new ones.
func TestObjectThatStopsMatching(t *testing.T) {
	for name, edit := range map[string]func(*wiretest.Event, json.RawMessage){
		"last state that matched": func(e *wiretest.Event, last json.RawMessage) { e.Object = last },
		"state that does not":     func(*wiretest.Event, json.RawMessage) {},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				w.pods.Set(pod("shop", "cart", "n1"))
				w.pods.Set(pod("shop", "checkout", "n1"))
				last := pod("shop", "cart", "n1")
				last.ResourceVersion = fmt.Sprint(w.Version() + 1)
				raw, err := json.Marshal(last)
				require.NoError(t, err)
				w.Break(wiretest.Watches, wiretest.EditEvents(func(e *wiretest.Event) {
					if e.Type == watch.Modified {
						e.Type = watch.Deleted
						edit(e, raw)
					}
				}))
				w.run()
				tok := w.store.Token()
				w.pods.Set(pod("shop", "cart", "n2"))
				synctest.Wait()
				_, exists, err := w.indexer.GetByKey("shop/cart")
				assert.NoError(t, err)
				assert.False(t, exists)
				assert.Equal(t, []string{"shop/checkout"}, w.indexer.ListKeys())
				assert.Equal(t, []string{"n1"}, w.indexer.ListIndexFuncValues("node"))
				left, err := w.indexer.IndexKeys("node", "n1")
				assert.NoError(t, err)
				assert.Equal(t, []string{"shop/checkout"}, left)
				assert.Equal(t, fmt.Sprint(w.Version()), w.indexer.LastStoreSyncResourceVersion())
				assert.Same(t, tok, w.store.Token())
			})
		})
	}
}
