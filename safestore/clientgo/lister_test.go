package clientgo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/listers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/safestore/clientgo"
)

// lister is one of client-go's, untyped. An empty namespace is all of them.
type lister struct {
	list func(namespace string, selector labels.Selector) ([]any, error)
	get  func(namespace, name string) (runtime.Object, error)
}

// everyLister returns all kinds of listers that client-go makes on an indexer.
func everyLister(indexer cache.Indexer) map[string]lister {
	generated := corelisters.NewPodLister(indexer)
	resource := corev1.Resource("pods")
	base := listers.New[*corev1.Pod](indexer, resource)
	generic := cache.NewGenericLister(indexer, resource)
	return map[string]lister{
		"corelisters.NewPodLister": {
			list: func(namespace string, selector labels.Selector) ([]any, error) {
				if namespace == "" {
					return anys(generated.List(selector))
				}
				return anys(generated.Pods(namespace).List(selector))
			},
			get: func(namespace, name string) (runtime.Object, error) { return generated.Pods(namespace).Get(name) },
		},
		"listers.New": {
			list: func(namespace string, selector labels.Selector) ([]any, error) {
				if namespace == "" {
					return anys(base.List(selector))
				}
				return anys(listers.NewNamespaced(base, namespace).List(selector))
			},
			get: func(namespace, name string) (runtime.Object, error) {
				return listers.NewNamespaced(base, namespace).Get(name)
			},
		},
		"cache.NewGenericLister": {
			list: func(namespace string, selector labels.Selector) ([]any, error) {
				if namespace == "" {
					return anys(generic.List(selector))
				}
				return anys(generic.ByNamespace(namespace).List(selector))
			},
			get: func(namespace, name string) (runtime.Object, error) { return generic.ByNamespace(namespace).Get(name) },
		},
	}
}

func anys[T any](list []T, err error) ([]any, error) {
	var all []any
	for _, obj := range list {
		all = append(all, obj)
	}
	return all, err
}

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(text)
	require.NoError(t, err)
	return parsed
}

func TestListersOnAReadyStore(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		for _, p := range somePods() {
			w.pods.Set(p)
		}
		w.run()
		for name, l := range everyLister(w.indexer) {
			list := func(namespace, labels string) string {
				found, err := l.list(namespace, selector(t, labels))
				assert.NoError(t, err, name)
				return keysOf(found)
			}
			assert.Equal(t, `["mail/cart" "mail/sender" "shop/cart" "shop/checkout" "static"]`, list("", ""), name)
			assert.Equal(t, `["mail/cart" "shop/cart"]`, list("", "app=cart"), name)
			assert.Equal(t, `["shop/cart" "shop/checkout"]`, list("shop", ""), name)
			assert.Equal(t, `["shop/cart"]`, list("shop", "app=cart"), name)
			assert.Equal(t, `[]`, list("none", ""), name)
			assert.Equal(t, `[]`, list("shop", "app=none"), name)

			found, err := l.get("shop", "cart")
			assert.NoError(t, err, name)
			assert.Equal(t, `["shop/cart"]`, keysOf([]any{found}), name)
			_, err = l.get("shop", "gift")
			assert.True(t, apierrors.IsNotFound(err), "%s: %v", name, err)
			assert.ErrorContains(t, err, `"gift" not found`, name)
		}
		static, err := cache.NewGenericLister(w.indexer, corev1.Resource("pods")).Get("static")
		assert.NoError(t, err)
		assert.NotNil(t, static)
	})
}

// listed is what came of a List that may have to wait.
type listed struct {
	keys string
	err  error
}

// lists starts what lists, in all its ways: those of the indexer itself, and those
// of each kind of lister.
func (w *wire) lists() map[string]<-chan listed {
	all := map[string]func() string{
		"List":                func() string { return keysOf(w.indexer.List()) },
		"ListKeys":            func() string { return sorted(w.indexer.ListKeys()) },
		"ListIndexFuncValues": func() string { return sorted(w.indexer.ListIndexFuncValues("node")) },
	}
	for name, l := range everyLister(w.indexer) {
		for _, namespace := range []string{"", "shop"} {
			all[name+" "+namespace] = func() string {
				found, err := l.list(namespace, labels.Everything())
				assert.NoError(w.t, err, "listers cannot say it")
				return keysOf(found)
			}
		}
	}
	answers := map[string]<-chan listed{}
	for name, list := range all {
		answer := make(chan listed, 1)
		answers[name] = answer
		go func() {
			var l listed
			defer func() { answer <- l }()
			l = recovered(list)
		}()
	}
	synctest.Wait()
	return answers
}

func recovered(list func() string) (l listed) {
	defer clientgo.Recover(&l.err)
	l.keys = list()
	return l
}

func waiting(t *testing.T, answers map[string]<-chan listed) {
	t.Helper()
	synctest.Wait()
	for name, answer := range answers {
		assert.Empty(t, answer, "%s does not wait", name)
	}
}

func answered(t *testing.T, answers map[string]<-chan listed) {
	t.Helper()
	synctest.Wait()
	for name, answer := range answers {
		want := `["shop/cart"]`
		if name == "ListIndexFuncValues" {
			want = `["n1"]`
		}
		if assert.Len(t, answer, 1, "%s still waits", name) {
			assert.Equal(t, listed{keys: want}, <-answer, name)
		}
	}
}

// What cannot fail waits for as long as it takes, before the first set and after
// a revocation, and then tells everything.
func TestListsWait(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		early := w.lists() // a moment before Run, too
		heal := w.Break(wiretest.All, wiretest.Answer(apierrors.NewInternalError(errors.New("no"))))
		w.run()
		answers := w.lists()
		after(time.Hour)
		waiting(t, early)
		waiting(t, answers)
		heal()
		after(time.Minute)
		answered(t, early)
		answered(t, answers)
		w.stop(nil)
	})
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		grant := w.refused()
		answers := w.lists()
		after(time.Hour)
		waiting(t, answers)
		grant()
		answered(t, answers)
	})
}

// The end of a wait is a panic, and with Recover an error that says why.
func TestListsThatCannotWaitPanic(t *testing.T) {
	why := errors.New("why")
	for name, test := range map[string]struct {
		end  func(*wire)
		want []error
	}{
		"the context ends":          {func(w *wire) { w.giveUp(why) }, []error{context.Canceled, why, invalidation.Forbidden}},
		"the store closes":          {func(w *wire) { w.stop(why) }, []error{why, invalidation.Closed}},
		"both, in whichever order":  {func(w *wire) { w.giveUp(nil); w.stop(nil) }, nil},
		"the context has ended":     {func(w *wire) { w.giveUp(why); waiting(w.t, nil) }, []error{why}},
		"the store has been closed": {func(w *wire) { w.stop(why); waiting(w.t, nil) }, []error{why}},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
				w.pods.Set(pod("shop", "cart", "n1"))
				w.refused()
				before := w.lists()
				waiting(t, before)
				test.end(w)
				synctest.Wait()
				for _, answers := range []map[string]<-chan listed{before, w.lists()} {
					for name, answer := range answers {
						require.Len(t, answer, 1, name)
						got := <-answer
						assert.Empty(t, got.keys, name)
						assert.ErrorIs(t, got.err, safestore.ErrNotReady, name)
						assert.False(t, apierrors.IsNotFound(got.err), name)
						for _, want := range test.want {
							assert.ErrorIs(t, got.err, want, name)
						}
					}
				}
			})
		})
	}
}

// A ready store needs no wait, so that the end of the context does not matter.
func TestListsOfAReadyStoreDoNotWait(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		w.run()
		w.giveUp(nil)
		answered(t, w.lists())
	})
}

func TestListsWithoutRun(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		answers := w.lists()
		waiting(t, answers)
		after(2 * time.Second)
		for name, answer := range answers {
			require.Len(t, answer, 1, name)
			assert.ErrorIs(t, (<-answer).err, safestore.ErrNotStarted, name)
		}
	})
}

// C18, and why all this is there: what is refused is neither absent nor empty.
func TestListersOfARefusedStore(t *testing.T) {
	onWire(t, safestore.Options{}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		grant := w.refused()
		for name, l := range everyLister(w.indexer) {
			_, err := l.get("shop", "cart")
			assert.ErrorIs(t, err, safestore.ErrNotReady, name)
			assert.ErrorIs(t, err, invalidation.Forbidden, name)
			assert.False(t, apierrors.IsNotFound(err), name)
			_, err = l.list("shop", labels.Nothing())
			assert.NoError(t, err, "%s: nothing is nothing, ready or not", name)
		}
		grant()
		for name, l := range everyLister(w.indexer) {
			found, err := l.get("shop", "cart")
			assert.NoError(t, err, name)
			assert.NotNil(t, found, name)
		}
	})
}

// The bound holds in every read, also while nothing has noticed yet.
func TestListersKeepTheBound(t *testing.T) {
	onWire(t, safestore.Options{MaxStaleness: 10 * time.Second}, func(t *testing.T, w *wire) {
		w.pods.Set(pod("shop", "cart", "n1"))
		w.run()
		answered(t, w.lists())
		w.BlackHole(true)
		after(10*time.Second + time.Nanosecond)
		answers := w.lists()
		waiting(t, answers)
		_, err := corelisters.NewPodLister(w.indexer).Pods("shop").Get("cart")
		assert.ErrorIs(t, err, invalidation.Stale)
		w.BlackHole(false)
		after(time.Minute)
		answered(t, answers)
	})
}
