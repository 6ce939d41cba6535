package watcher_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// client-go's Reflector is the record of what real servers do. Each behaviour that
// one of its branches answers has a test here or, where it ends readiness, in the
// tests of the store.

// What ends a watch without saying anything about its version: it is resumed
// from there, nothing is listed, and nothing is lost.
func TestResumes(t *testing.T) {
	refuse := func(err *apierrors.StatusError) func(*rig) {
		return func(r *rig) {
			r.Break(wiretest.First(3, wiretest.Resumed), wiretest.Answer(err))
			after(10 * time.Second)
			r.End()
		}
	}
	send := func(err *apierrors.StatusError) func(*rig) {
		return func(r *rig) {
			r.Send(wiretest.ErrorEvent(err))
			r.End()
		}
	}
	for name, test := range map[string]struct {
		trouble func(*rig)
		least   time.Duration // before the next watch
		most    time.Duration // until one works
	}{
		"ended":              {func(r *rig) { after(10 * time.Second); r.End() }, 0, 200 * time.Millisecond},
		"ended at once":      {func(r *rig) { r.End() }, 0, 200 * time.Millisecond},
		"cut":                {func(r *rig) { after(10 * time.Second); r.Cut() }, 0, 200 * time.Millisecond},
		"connection refused": {func(r *rig) { r.Down(); time.AfterFunc(time.Minute, r.Up) }, time.Minute, 2 * time.Minute},
		"dropped instead of answered": {func(r *rig) {
			r.Break(wiretest.First(1, wiretest.Resumed), wiretest.Abort)
			after(10 * time.Second)
			r.End()
		}, 0, time.Second},
		"429":                  {refuse(apierrors.NewTooManyRequests("no", 0)), 400 * time.Millisecond, 9 * time.Second},
		"429 with Retry-After": {refuse(apierrors.NewTooManyRequests("no", 20)), time.Minute, 2 * time.Minute},
		"429 in the stream":    {send(apierrors.NewTooManyRequests("no", 30)), 30 * time.Second, 38 * time.Second},
		"500 in the stream":    {send(apierrors.NewInternalError(errors.New("no"))), 400 * time.Millisecond, 1200 * time.Millisecond},
		"502, again and again": {refuse(&apierrors.StatusError{ErrStatus: metav1.Status{Code: 502, Reason: metav1.StatusReasonInternalError}}), 400 * time.Millisecond, 9 * time.Second},
		"503":                  {refuse(apierrors.NewServiceUnavailable("no")), 400 * time.Millisecond, 9 * time.Second},
		"opening hangs": {func(r *rig) {
			r.Break(wiretest.First(1, wiretest.Resumed), wiretest.Hang)
			after(10 * time.Second)
			r.End()
		}, time.Minute, time.Minute + 400*time.Millisecond},
		"half a frame": {func(r *rig) {
			after(10 * time.Second)
			r.Send([]byte(`{"type":"ADDED","object":{"kind":"Conf`))
			r.Cut()
		}, 0, 2 * time.Second},
		"502 from a proxy": {func(r *rig) {
			r.Break(wiretest.First(1, wiretest.Resumed), wiretest.Respond(http.StatusBadGateway, http.Header{"Content-Type": {"text/html"}}, "<html>"))
			r.End()
		}, 400 * time.Millisecond, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
				r.put("a", "b")
				r.start()
				require.Equal(t, []string{"begin", "publish 1002"}, r.said())
				r.put("c")
				require.Equal(t, []string{"ADDED c"}, r.said())
				test.trouble(r)
				from := time.Now()
				after(test.most + time.Second)
				require.Equal(t, 1, r.Streams())
				resumed := r.Requests(wiretest.Resumed)
				took := resumed[len(resumed)-1].At.Sub(from)
				assert.GreaterOrEqual(t, took, test.least)
				assert.LessOrEqual(t, took, test.most)
				after(10 * time.Second)
				r.maps.Delete("default", "a")
				r.put("d")
				after(10 * time.Second)
				assert.Equal(t, []string{"b", "c", "d"}, r.names())
				for _, told := range r.said() {
					assert.NotContains(t, told, "begin")
				}
				assert.Equal(t, 1, r.count(wiretest.Initial))
				assert.Equal(t, "1003", r.Requests(wiretest.Resumed)[0].Options.ResourceVersion)
			})
		})
	}
}

// A server that fails over one version again and again is asked for a new set.
func TestGivesUpTheVersion(t *testing.T) {
	for name, fault := range map[string]wiretest.Fault{
		"internal error in the stream": wiretest.Script(false, wiretest.ErrorEvent(apierrors.NewInternalError(errors.New("no")))),
		"very short watches":           wiretest.Respond(http.StatusOK, nil, ""),
		"what cannot be parsed":        wiretest.Script(false, []byte("garbage\n")),
		"500":                          wiretest.Answer(apierrors.NewInternalError(errors.New("revision has been compacted"))),
		"504":                          wiretest.Answer(apierrors.NewTimeoutError("no", 0)),
		"400":                          wiretest.Answer(apierrors.NewBadRequest("invalid resource version")),
		"422":                          wiretest.Answer(wiretest.NoWatchList()),
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
				r.put("a")
				r.start()
				r.said()
				r.Break(wiretest.Resumed, fault)
				after(10 * time.Second)
				r.End()
				after(30 * time.Second)
				assert.Equal(t, []string{"revoke Relist", "begin", "publish 1001"}, r.said())
				assert.Equal(t, 3, r.count(wiretest.Resumed))
			})
		})
	}
}

// The client ends a watch that the server does not (C4).
func TestC4WatchTimeoutIsTheClients(t *testing.T) {
	onWire(t, watcher.Options{WatchTimeout: time.Minute}, func(t *testing.T, r *rig) {
		r.put("a")
		r.Break(wiretest.All, wiretest.NoTimeout)
		r.start()
		after(time.Hour)
		watches := r.Requests(wiretest.Watches)
		assert.GreaterOrEqual(t, len(watches), 60/3)
		for i, watch := range watches[:len(watches)-1] {
			asked := time.Duration(*watch.Options.TimeoutSeconds) * time.Second
			assert.GreaterOrEqual(t, asked, time.Minute)
			assert.Less(t, asked, 2*time.Minute)
			lasted := watch.Ended.Sub(watch.At)
			assert.GreaterOrEqual(t, lasted, asked+10*time.Second)
			assert.Less(t, lasted, asked+11*time.Second)
			assert.Equal(t, watch.Ended, watches[i+1].At, "reopened at once")
		}
		for _, told := range r.said()[2:] {
			assert.Equal(t, "advance 1001", told)
		}
	})
}

// Servers whose lists have no version, or "0", which is any. There is nothing to
// resume from: each watch begins with the objects there are.
func TestListsWithoutVersion(t *testing.T) {
	for _, version := range []string{"", "0"} {
		for _, pages := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q, pages %v", version, pages), func(t *testing.T) {
				onWire(t, watcher.Options{PageSize: 2}, func(t *testing.T, r *rig) {
					if version == "" {
						r.Style(wiretest.Absent)
					} else {
						r.Break(wiretest.Lists, wiretest.EditList(func(l *wiretest.List) { l.Metadata.ResourceVersion = version }))
					}
					if pages {
						r.onLists()
					}
					r.put("a", "b", "c")
					r.start()
					require.Equal(t, []string{"a", "b", "c"}, r.names())
					r.maps.Delete("default", "a")
					r.put("d")
					assert.Equal(t, []string{"b", "c", "d"}, r.names())
					r.Stall() // it misses this
					r.maps.Delete("default", "b")
					after(time.Hour)
					assert.Equal(t, []string{"c", "d"}, r.names())
				})
			})
		}
	}
}

// Versions that cannot be compared are still good to resume from.
func TestOpaqueVersions(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.Style(wiretest.Opaque)
		r.put("a", "b")
		r.start()
		r.put("c")
		after(10 * time.Second)
		r.Cut()
		r.maps.Delete("default", "a")
		after(10 * time.Second)
		assert.Equal(t, []string{"begin", "publish etag-1002", "ADDED c", "DELETED a"}, r.said())
		assert.Equal(t, "etag-1003", r.Requests(wiretest.Resumed)[0].Options.ResourceVersion)
	})
}

// Nobody is asked for a WatchList who says that it has none, or where client-go is
// told not to.
func TestWithoutWatchList(t *testing.T) {
	check := func(t *testing.T, r *rig) {
		r.put("a", "b", "c")
		r.start()
		assert.Equal(t, []string{"begin", "publish 1003"}, r.said())
		assert.Zero(t, r.count(wiretest.Initial))
		assert.Empty(t, r.watch.Status().WatchListRefused)
	}
	t.Run("source", func(t *testing.T) {
		onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
			r.wrap = func(s watcher.Source) watcher.Source { return unsupported{s} }
			check(t, r)
		})
	})
	t.Run("feature gate", func(t *testing.T) {
		featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false)
		onWire(t, watcher.Options{}, check)
	})
}

type unsupported struct{ watcher.Source }

func (unsupported) IsWatchListSemanticsUnSupported() bool { return true }

// Proxies hold the headers of a watch back until its first event.
func TestHeldHeaders(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.onLists()
		r.Break(wiretest.Resumed, wiretest.Together(wiretest.HeldHeaders, wiretest.NoBookmarks))
		r.put("a")
		r.start()
		assert.Equal(t, []string{"begin", "begin"}, r.said())
		after(2*time.Second - time.Nanosecond)
		assert.Empty(t, r.said())
		after(time.Nanosecond)
		assert.Equal(t, []string{"publish 1001"}, r.said(), "a complete list need not wait")
		r.put("b")
		assert.Equal(t, []string{"ADDED b"}, r.said())
	})
}

// What the sink cannot apply is not passed over (C50).
func TestC50SinkRefuses(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		bad := errors.New("no transform for b")
		r.put("a")
		r.start()
		r.said()
		r.refuse = func(obj runtime.Object) error {
			if obj.(interface{ GetName() string }).GetName() == "b" {
				return bad
			}
			return nil
		}
		r.put("b")
		assert.Equal(t, []string{"revoke BadData"}, r.said())
		assert.ErrorIs(t, r.watch.Status().LastError, bad)
		after(10 * time.Minute)
		for _, told := range r.said() {
			assert.NotContains(t, told, "publish", "a set without it is not complete")
		}
		assert.ErrorIs(t, r.watch.Status().LastError, bad)
		r.maps.Delete("default", "b")
		after(45 * time.Second)
		assert.Equal(t, []string{"a"}, r.names())
	})
}

// A frame that is garbled on the way is no bad object: the watch resumes before it.
func TestGarbledFrame(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.put("a")
		r.start()
		r.said()
		r.Send([]byte("garbage\n"))
		assert.Empty(t, r.said())
		assert.Error(t, r.watch.Status().LastError)
		after(2 * time.Second)
		r.put("b")
		assert.Equal(t, []string{"ADDED b"}, r.said())
	})
}

// What is no object is not shown to the sink, and not passed over. A dynamic client
// takes any JSON for an object.
func TestNotObjects(t *testing.T) {
	table := map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": map[string]any{"name": "a", "resourceVersion": "1002"}}
	for name, frame := range map[string][]byte{
		"Status":         wiretest.Frame(watch.Modified, map[string]any{"apiVersion": "v1", "kind": "Status", "code": 410}),
		"Table":          wiretest.Frame(watch.Modified, table),
		"unknown event":  wiretest.Frame("REPLACED", table),
		"no metadata":    wiretest.Frame(watch.Added, map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{}}),
		"no kind":        wiretest.Frame(watch.Added, map[string]any{"metadata": map[string]any{"name": "a"}}),
		"no object":      []byte(`{"type":"ADDED"}` + "\n"),
		"error, no kind": wiretest.Frame(watch.Error, map[string]any{"code": 410}),
	} {
		for _, client := range []string{"typed", "dynamic"} {
			t.Run(name+", "+client, func(t *testing.T) {
				onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
					if client == "dynamic" {
						r.wrap = func(watcher.Source) watcher.Source {
							return watcher.ListWatch(dynamic.NewForConfigOrDie(r.Config()).Resource(wiretest.ConfigMaps.GroupVersionResource))
						}
					}
					r.put("a")
					r.start()
					r.said()
					r.Send(frame)
					assert.Equal(t, []string{"revoke BadData"}, r.said())
					after(2 * time.Second)
					assert.Equal(t, []string{"begin", "publish 1001"}, r.said())
				})
			})
		}
	}
}

// A source that returns nothing, or does not come back.
func TestBadSources(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.wrap = func(watcher.Source) watcher.Source { return nothing{} }
		r.start()
		assert.Equal(t, []string{"begin", "revoke BadData"}, r.said())
		assert.ErrorContains(t, r.watch.Status().LastError, "neither an answer nor an error")
	})
}

type nothing struct{}

func (nothing) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, nil
}

func (nothing) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, nil
}
