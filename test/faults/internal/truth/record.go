package truth

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Moment is a state, and since when it was the current one.
type Moment struct {
	At    time.Time
	State State
}

// Record is the list of all states, oldest first. Make one with [Follow].
type Record struct {
	client *clientv3.Client
	prefix string

	mu      sync.Mutex
	moments []Moment
	names   map[string]bool
	stop    func() error
}

// Follow records what is stored under a prefix of etcd, such as
// /registry/configmaps/default/, from now until Close. The client stays the
// caller's.
func Follow(ctx context.Context, client *clientv3.Client, prefix string) (*Record, error) {
	r := &Record{client: client, prefix: prefix}
	return r, r.Again(ctx)
}

// Again begins anew with what is stored now: for when etcd's own history was
// changed. States from before stay in the record.
func (r *Record) Again(ctx context.Context) error {
	if err := r.Close(); err != nil {
		return err
	}
	asked := time.Now()
	all, err := r.client.Txn(ctx).Then(
		clientv3.OpGet(r.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(r.prefix+Counter), clientv3.OpGet(r.prefix+Blinker),
	).Commit()
	if err != nil {
		return err
	}
	now := State{}
	r.names = map[string]bool{}
	for _, kv := range all.Responses[0].GetResponseRange().Kvs {
		r.names[string(kv.Key)] = true
	}
	now.Objects = len(r.names)
	for _, answer := range all.Responses[1:] {
		for _, kv := range answer.GetResponseRange().Kvs {
			value, err := stored(kv.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", kv.Key, err)
			}
			now.set(path.Base(string(kv.Key)), value)
		}
	}
	r.mu.Lock()
	r.moments = append(r.moments, Moment{asked, now})
	r.mu.Unlock()

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	changes := r.client.Watch(ctx, r.prefix, clientv3.WithPrefix(), clientv3.WithRev(all.Header.Revision+1))
	ended := make(chan error, 1)
	go func() { ended <- r.follow(changes, now) }()
	r.stop = func() error {
		cancel()
		return <-ended
	}
	return nil
}

// Close ends the recording. A second call does nothing.
func (r *Record) Close() error {
	if r.stop == nil {
		return nil
	}
	err := r.stop()
	r.stop = nil
	return err
}

// follow takes changes down until their channel is closed.
func (r *Record) follow(changes clientv3.WatchChan, now State) error {
	for change := range changes {
		if err := change.Err(); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("truth under %s is lost: %w", r.prefix, err)
		}
		at := time.Now()
		for _, e := range change.Events {
			key, value := string(e.Kv.Key), ""
			if e.Type == clientv3.EventTypeDelete {
				delete(r.names, key)
			} else {
				r.names[key] = true
				if strings.HasSuffix(key, "/"+Counter) || strings.HasSuffix(key, "/"+Blinker) {
					var err error
					if value, err = stored(e.Kv.Value); err != nil {
						return fmt.Errorf("%s: %w", key, err)
					}
				}
			}
			now.Objects = len(r.names)
			now.set(path.Base(key), value)
			r.mu.Lock()
			r.moments = append(r.moments, Moment{at, now})
			r.mu.Unlock()
		}
	}
	return nil
}

// Moments returns a copy of the record.
func (r *Record) Moments() []Moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Moment(nil), r.moments...)
}

// Now returns the current state.
func (r *Record) Now() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moments[len(r.moments)-1].State
}
