package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/history"
	"github.com/kube-safestore/kube-safestore/test/internal/proxy"
	"github.com/kube-safestore/kube-safestore/test/internal/requests"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// settling is how long a store may take to be right again when all is well: it is
// kept from being ready for up to half a minute after many revocations.
const settling = 45 * time.Second

// TestSoak writes while connections are cut, API servers restarted and killed,
// and etcd compacted, at random. Then every read that succeeded is compared with
// what etcd held at that version, the stores and their subscribers with the server,
// and each change with what its subscriber had been told before (C36, C48, C55).
func TestSoak(t *testing.T) {
	t.Parallel()
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./e2e -run TestSoak -soak %v -seed %d", *soakTime, seed)
	e := own(t)
	namespace := e.namespace(t)
	etcd, err := e.Etcd.Client()
	require.NoError(t, err)
	recorder, err := history.Record(t.Context(), etcd, "configmaps", namespace)
	require.NoError(t, err)

	p, config := throughProxy(t, e.API)
	o := fast()
	o.Watch.WatchTimeout = 5 * time.Second
	subjects := subjectsFor(t, config, namespace, o)
	samples, diaries := map[*subject.Subject]*samples{}, map[*subject.Subject]*subject.Diary{}
	followers := map[*subject.Subject]*subject.Follower{}
	ctx, stop := context.WithTimeout(t.Context(), *soakTime)
	defer stop()
	var readers, writers sync.WaitGroup
	readUntil, stopReading := context.WithCancel(t.Context())
	defer stopReading()
	for _, s := range subjects {
		diaries[s] = subject.KeepDiary(s)
		read := newSamples()
		samples[s] = read
		s.Start(t)
		followers[s] = subject.Follow(readUntil, s)
		for range 2 {
			readers.Go(func() { read.read(readUntil, s) })
		}
	}
	// Some write through a server that is left alone, so that things change while
	// the other one is down.
	uncached, err := e.StartReplica(t.Context(), "--watch-cache=false")
	require.NoError(t, err)
	for w, writer := range []*env{e, connect(t, e.Cluster, uncached.Config()), e} {
		writers.Go(func() { writer.writeAtRandom(ctx, namespace, w, rand.New(rand.NewPCG(seed, uint64(w)+1))) })
	}
	e.breakAtRandom(ctx, t, p, rand.New(rand.NewPCG(seed, 0)))
	writers.Wait()

	healed := time.Now()
	after := e.configMaps(t, namespace)
	for _, s := range subjects {
		s.AwaitContents(t, after)
		eventually(t, "the subscriber has the same", func() bool { return followers[s].Contents().Equal(after) })
	}
	t.Logf("all stores right %v after the last fault", time.Since(healed))
	assert.Less(t, time.Since(healed), settling)
	stopReading()
	readers.Wait()
	closing, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, recorder.Close(closing))
	t.Logf("%d changes", recorder.Len())
	withEach(t, subjects, func(t *testing.T, s *subject.Subject) {
		s.Stop(t, nil)
		assert.Empty(t, diaries[s].OutOfOrder())
		assert.Empty(t, followers[s].Stop(), "no change that cannot be (C36, C39, C40)")
		samples[s].check(t, recorder)
		all := requests.Main(s.Requests.All())
		audits := int(s.Status().Watch.Counts.Audits)
		assert.LessOrEqual(t, len(requests.Unprompted(all)), audits, "lists that are neither prompted nor audits")
		t.Logf("%d reads of %d versions, %d refused; %d changes told; %d sets, %d watches; %v", samples[s].reads, len(samples[s].byVersion),
			samples[s].refused, followers[s].Events(), len(requests.Sets(all)), requests.Count(all, requests.Watch), diaries[s].Entries())
	})
}

// writeAtRandom creates, updates and deletes objects that no other writer
// touches, each time with a new number. What fails may or may not have been
// done; it is not asked.
func (e *env) writeAtRandom(ctx context.Context, namespace string, writer int, random *rand.Rand) {
	client := e.admin.CoreV1().ConfigMaps(namespace)
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("w%d-%d", writer, random.IntN(8))
		obj := configMap(namespace, name, strconv.Itoa(n))
		request, cancel := context.WithTimeout(ctx, 5*time.Second)
		var err error
		if random.IntN(4) == 0 {
			err = client.Delete(request, name, metav1.DeleteOptions{})
		} else if _, err = client.Update(request, obj, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = client.Create(request, obj, metav1.CreateOptions{})
		}
		cancel()
		pause := time.Duration(random.IntN(10)) * time.Millisecond
		if err != nil && !apierrors.IsNotFound(err) {
			pause += 50 * time.Millisecond // the server may be down
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// breakAtRandom breaks things until ctx ends, and leaves them whole.
func (e *env) breakAtRandom(ctx context.Context, t *testing.T, p *proxy.Proxy, random *rand.Rand) {
	t.Helper()
	for begun := time.Now(); ; {
		select {
		case <-time.After(time.Duration(random.IntN(400)) * time.Millisecond):
		case <-ctx.Done():
			return
		}
		var fault string
		switch n := random.IntN(20); {
		case n < 12:
			fault = fmt.Sprintf("cut %d", p.Cut())
		case n < 15:
			fault = "compacted"
			_, err := e.Etcd.Compact(t.Context())
			require.NoError(t, err)
		case n < 17:
			fault = "refused for a while"
			p.Refuse()
			select {
			case <-time.After(time.Duration(random.IntN(1000)) * time.Millisecond):
			case <-ctx.Done():
			}
			p.Accept()
		case n < 18:
			fault = "restarted"
			restart(t, e.API)
		default:
			fault = "killed and started"
			require.NoError(t, e.API.Kill())
			require.NoError(t, e.API.Start(t.Context()))
		}
		t.Logf("%6.2fs %s", time.Since(begun).Seconds(), fault)
	}
}

// samples is what the readers of one store read.
type samples struct {
	mu        sync.Mutex
	byVersion map[int64]subject.Contents
	reads     int
	refused   int
	wrong     []string
}

func newSamples() *samples { return &samples{byVersion: map[int64]subject.Contents{}} }

// read reads until ctx ends. Under one token, and over all of them since no
// server goes back here, versions and generations only grow.
func (r *samples) read(ctx context.Context, s *subject.Subject) {
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	var generation uint64
	var version int64
	for {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
		view, err := s.View()
		if err != nil {
			r.note(errors.Is(err, safestore.ErrNotReady) && !apierrors.IsNotFound(err), "%v", err)
			r.mu.Lock()
			r.refused++
			r.mu.Unlock()
			continue
		}
		now, err := strconv.ParseInt(view.Version, 10, 64)
		r.note(err == nil, "version %q", view.Version)
		r.note(view.Token.Generation() >= generation, "generation %d after %d", view.Token.Generation(), generation)
		r.note(now >= version, "version %d after %d, generation %d", now, version, view.Token.Generation())
		generation, version = view.Token.Generation(), now
		contents := view.Contents()
		r.mu.Lock()
		r.reads++
		other, ok := r.byVersion[now]
		if !ok {
			r.byVersion[now] = contents
		}
		r.mu.Unlock()
		r.note(!ok || other.Equal(contents), "two sets at version %d", now)
	}
}

// note takes down what must not be.
func (r *samples) note(ok bool, format string, args ...any) {
	if ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// check compares what was read with what etcd held.
func (r *samples) check(t *testing.T, recorder *history.Recorder) {
	t.Helper()
	assert.Empty(t, r.wrong)
	assert.NotEmpty(t, r.byVersion)
	versions := make([]int64, 0, len(r.byVersion))
	for version := range r.byVersion {
		versions = append(versions, version)
	}
	slices.Sort(versions)
	recorder.Replay(versions, func(version int64, contents subject.Contents) {
		if !contents.Equal(r.byVersion[version]) {
			assert.Equal(t, contents, r.byVersion[version], "at version %d", version)
		}
	})
}
