// Package history knows every state that a collection ever had, since it listens
// to etcd itself: no API server stands between it and the truth, and none that
// is restarted interrupts it.
package history

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// Recorder records a namespace of a collection. Make one with [Record].
type Recorder struct {
	client *clientv3.Client
	prefix string
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex
	events []event
	until  int64 // the last revision that is wanted; 0 for all
}

// event is one change.
type event struct {
	revision int64
	key      types.NamespacedName
	state    subject.State
	deleted  bool
}

// Record records what happens to a resource of the core group in a namespace,
// which must be empty, from now on until Close. The client must not be used
// after it.
func Record(ctx context.Context, client *clientv3.Client, resource, namespace string) (*Recorder, error) {
	r := &Recorder{client: client, prefix: path.Join("/registry", resource, namespace) + "/", done: make(chan error, 1)}
	now, err := client.Get(ctx, r.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	if len(now.Kvs) > 0 {
		return nil, fmt.Errorf("%s is not empty", r.prefix)
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	changes := client.Watch(ctx, r.prefix, clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1))
	go func() { r.done <- r.record(changes, namespace) }()
	return r, nil
}

// Close ends the recording when everything up to now is in it.
func (r *Recorder) Close(ctx context.Context) error {
	defer r.cancel()
	now, err := r.client.Get(ctx, r.prefix, clientv3.WithCountOnly())
	if err != nil {
		return errors.Join(err, r.client.Close())
	}
	r.mu.Lock()
	r.until = now.Header.Revision
	r.mu.Unlock()
	err = r.finish(ctx)
	return errors.Join(err, r.client.Close())
}

// finish asks etcd how far the watch is until it is far enough.
func (r *Recorder) finish(ctx context.Context) error {
	again := time.NewTicker(100 * time.Millisecond) // etcd does not answer while a watch lags
	defer again.Stop()
	for {
		if err := r.client.RequestProgress(ctx); err != nil {
			return err
		}
		select {
		case err := <-r.done:
			return err
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *Recorder) record(changes clientv3.WatchChan, namespace string) error {
	for change := range changes {
		if err := change.Err(); err != nil {
			return err
		}
		for _, e := range change.Events {
			recorded, err := read(e, namespace)
			if err != nil {
				return fmt.Errorf("%s: %w", e.Kv.Key, err)
			}
			r.mu.Lock()
			r.events = append(r.events, recorded)
			r.mu.Unlock()
		}
		r.mu.Lock()
		done := r.until != 0 && change.IsProgressNotify() && change.Header.Revision >= r.until
		r.mu.Unlock()
		if done {
			return nil
		}
	}
	return errors.New("etcd ended the watch")
}

func read(e *clientv3.Event, namespace string) (event, error) {
	recorded := event{
		revision: e.Kv.ModRevision,
		key:      types.NamespacedName{Namespace: namespace, Name: path.Base(string(e.Kv.Key))},
		deleted:  e.Type == clientv3.EventTypeDelete,
	}
	if recorded.deleted {
		return recorded, nil
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(e.Kv.Value, nil, nil)
	if err != nil {
		return event{}, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return event{}, err
	}
	recorded.state = subject.StateOf(m)
	recorded.state.Version = strconv.FormatInt(e.Kv.ModRevision, 10) // etcd keeps it beside the object
	return recorded, nil
}

// Len returns the number of changes so far.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// Replay calls f with the contents at each of the versions, which must be
// sorted. The contents are only valid during the call.
func (r *Recorder) Replay(versions []int64, f func(version int64, contents subject.Contents)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	contents, next := subject.Contents{}, 0
	for _, version := range versions {
		for ; next < len(r.events) && r.events[next].revision <= version; next++ {
			if e := r.events[next]; e.deleted {
				delete(contents, e.key)
			} else {
				contents[e.key] = e.state
			}
		}
		f(version, contents)
	}
}
