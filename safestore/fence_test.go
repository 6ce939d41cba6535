package safestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// The tests of this file are named by the anomaly that they forbid. Those that
// race spin on another processor while the order in question is run through
// often; publish.go says what the orders are.

// while runs f in a loop on the other processors, from before body begins until
// after it has returned.
func while(f func(), body func()) {
	var wg, running sync.WaitGroup
	var done atomic.Bool
	n := min(4, max(1, runtime.GOMAXPROCS(0)-1))
	running.Add(n)
	for range n {
		wg.Go(func() {
			running.Done()
			for !done.Load() {
				f()
			}
		})
	}
	running.Wait()
	body()
	done.Store(true)
	wg.Wait()
}

// Stale read after revoke: a read that begins when Revoke has returned shows the
// revoked generation.
func TestNoStaleReadAfterRevoke(t *testing.T) {
	r := newRig(t)
	var revoked atomic.Uint64
	while(func() {
		floor := revoked.Load()
		if s, err := r.Snapshot(); err == nil && s.Token().Generation() <= floor {
			t.Errorf("generation %d is read, %d was revoked before", s.Token().Generation(), floor)
		}
		if tok := r.Token(); tok.Generation() <= floor {
			t.Errorf("generation %d is current, %d was revoked before", tok.Generation(), floor)
		}
	}, func() {
		for i := range 3000 {
			r.publishSet(t, strconv.Itoa(i+1), mapOf("A", "a", strconv.Itoa(i+1)))
			tok := r.Token()
			work, cancel := context.WithCancel(tok.Context())
			require.True(t, r.store.Revoke(tok, nil))
			require.Error(t, work.Err(), "work under the token is over when Revoke returns")
			revoked.Store(tok.Generation())
			_, err := r.Snapshot()
			require.ErrorIs(t, err, invalidation.Requested)
			cancel()
		}
	})
}

// Read before publish: a reader that finds the token ready does not find the
// whole set. The first set is the hard one, since the token that it makes ready
// is the one of the empty snapshot before it.
func TestNoReadBeforePublish(t *testing.T) {
	for range 500 {
		r := newRig(t)
		first := r.Token()
		r.Begin()
		require.NoError(t, r.Build(watch.Added, mapOf("A", "a", "1")))
		while(func() {
			ready := first.State() == token.Ready
			s, err := r.Snapshot()
			switch {
			case ready && err != nil:
				t.Errorf("the token was ready, and there is nothing to read: %v", err)
			case err == nil && s.Len() != 1:
				t.Errorf("ready with %d objects of 1", s.Len())
			}
		}, func() { r.put(t, "1") })
		if t.Failed() {
			return
		}
	}
}

// The same for readers that are woken, and for all generations: WaitReady is the
// promise that a read made at once is answered.
func TestNoReadBeforePublishWhenWoken(t *testing.T) {
	r := newRig(t)
	for i := range 300 {
		version := strconv.Itoa(i + 1)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := r.WaitReady(t.Context()); err != nil {
					t.Errorf("WaitReady: %v", err)
				}
				if s, err := r.Snapshot(); err != nil || s.ResourceVersion() != version {
					t.Errorf("woken for version %s: %v", version, err)
				}
			})
		}
		r.publishSet(t, version, mapOf("A", "a", version))
		wg.Wait()
		r.store.Revoke(r.Token(), nil)
	}
}

// The same, stopped at the place in question: the store's log says that it is
// ready, and for as long as that takes nobody finds anything else.
func TestLogOfReadinessIsTrue(t *testing.T) {
	r := newRig(t)
	var said []string
	r.hearLog(func(message string) {
		said = append(said, message)
		s, err := r.Snapshot()
		switch message {
		case "Store is ready":
			if assert.NoError(t, err) {
				assert.Equal(t, 1, s.Len())
			}
		case "Store is not ready":
			assert.ErrorIs(t, err, invalidation.Forbidden)
		default:
			t.Errorf("unknown message %q", message)
		}
	})
	for i := range 3 {
		r.publishSet(t, strconv.Itoa(i+1), mapOf("A", "a", "1"))
		r.revokeFor(invalidation.NotAllowed, errors.New("forbidden"))
	}
	assert.Len(t, said, 6)
}

// Revoked token lives on: a reader of the dropped or replaced data finds its
// token still ready. An empty store would pass for an empty cluster.
func TestNoEmptyReadWhenDataIsDropped(t *testing.T) {
	r := newRig(t)
	while(func() {
		if s, err := r.Snapshot(); err == nil && (s.Len() != 1 || s.ResourceVersion() == "") {
			t.Errorf("ready with %d objects of 1, at version %q", s.Len(), s.ResourceVersion())
		}
	}, func() {
		for i := range 10_000 {
			r.publishSet(t, strconv.Itoa(i+1), mapOf("A", "a", "1"))
			r.revokeFor(invalidation.NotAllowed, nil)
		}
	})
}

// The same for readers that are woken by readiness and come too late: they go on
// waiting, and do not take what is there by then.
func TestNoEmptyReadWhenWokenTooLate(t *testing.T) {
	r := newRig(t)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for {
				list, err := r.List(t.Context())
				if errors.Is(err, invalidation.Closed) {
					return
				}
				if err != nil || len(list) != 1 {
					t.Errorf("%d objects of 1, %v", len(list), err)
					return
				}
				runtime.Gosched()
			}
		})
	}
	for i := range 1000 {
		r.publishSet(t, strconv.Itoa(i+1), mapOf("A", "a", "1"))
		runtime.Gosched()
		r.revokeFor(invalidation.NotAllowed, nil)
	}
	r.close(errTest)
	wg.Wait()
}

// Revived token: what was begun under a revoked token makes no later one ready.
func TestNoRevivedToken(t *testing.T) {
	r := newRig(t)
	first := r.Token()
	r.Begin()
	require.NoError(t, r.Build(watch.Added, mapOf("A", "a", "1")))
	require.True(t, r.store.Revoke(first, nil)) // what is being listed is not trusted
	r.put(t, "1")
	second := r.Token()
	assert.Equal(t, token.Pending, second.State())
	_, err := r.Snapshot()
	assert.ErrorIs(t, err, invalidation.Requested)

	// It is there for events and for those who know what they do.
	require.NoError(t, r.Apply(watch.Added, mapOf("A", "b", "2")))
	r.Advance("3")
	stale, _ := r.Stale()
	assert.Equal(t, 2, stale.Len())
	assert.Same(t, first, stale.Token())
	assert.Equal(t, token.Pending, second.State(), "an event makes nothing ready")

	r.publishSet(t, "4", mapOf("A", "a", "1"))
	assert.Equal(t, token.Ready, second.State())
	assert.Equal(t, token.Revoked, first.State())
	assert.ErrorIs(t, first.Cause(), invalidation.Requested, "the answer stays")
}

// A token that a policy keeps through a relist ends with its list: what comes
// next is another set, however alike.
func TestKeptTokenEndsWithItsSet(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", mapOf("A", "a", "1"))
	first := r.Token()
	r.publishSet(t, "2", mapOf("A", "a", "1")) // no revocation before it
	assert.ErrorIs(t, first.Cause(), invalidation.Relist)
	assert.EqualValues(t, 2, r.Token().Generation())
	assert.Equal(t, token.Ready, r.Token().State())

	r.Begin()
	require.True(t, r.store.Revoke(r.Token(), nil))
	r.put(t, "3")
	assert.Equal(t, token.Pending, r.Token().State(), "kept, and then revoked by the program")
}

// A token that a policy keeps is replaced in the publication of the next set: no
// read fails in between.
func TestNoGapWhenATokenIsKept(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", mapOf("A", "a", "1"))
	while(func() {
		s, err := r.Snapshot()
		if err != nil {
			t.Errorf("no read fails: %v", err)
		} else if s.Len() != 1 {
			t.Errorf("%d objects of 1", s.Len())
		}
	}, func() {
		for i := range 3000 {
			r.publishSet(t, strconv.Itoa(i+2), mapOf("A", "a", "1"))
			if t.Failed() {
				return
			}
		}
	})
}

// Lost wake-up: a reader that begins to wait while the store becomes ready, or
// is revoked, sleeps for ever.
func TestNoLostWakeUp(t *testing.T) {
	for range 300 {
		r := newRig(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := r.Get(t.Context(), key("A", "a")); err != nil {
					t.Errorf("Get: %v", err)
				}
			})
		}
		wg.Go(func() {
			for i := range 4 {
				r.publishSet(t, strconv.Itoa(i+1), mapOf("A", "a", "1"))
				r.revokeFor(invalidation.VersionExpired, nil)
			}
			r.publishSet(t, "9", mapOf("A", "a", "1"))
		})
		wg.Wait() // hangs if one sleeps
	}
}

// One publication, or the end, releases everybody who waits, at once: in the
// bubble no time passes.
func TestEverybodyIsReleased(t *testing.T) {
	for _, readers := range []int{1_000, 10_000} {
		for _, closing := range []bool{false, true} {
			t.Run(fmt.Sprintf("readers=%d/closing=%v", readers, closing), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					cause := errors.New("the end")
					began := time.Now()
					var wg sync.WaitGroup
					var good atomic.Int64
					for i := range readers {
						wg.Go(func() {
							var err error
							switch i % 3 {
							case 0:
								_, err = r.WaitReady(t.Context())
							case 1:
								_, err = r.Get(t.Context(), key("A", "a"))
							case 2:
								var list []*Map
								if list, err = r.List(t.Context()); err == nil && len(list) != 2 {
									err = fmt.Errorf("%d objects of 2", len(list))
								}
							}
							if closing && errors.Is(err, invalidation.Closed) && errors.Is(err, cause) || !closing && err == nil {
								good.Add(1)
							}
						})
					}
					synctest.Wait() // all of them are blocked
					assert.Zero(t, good.Load())
					r.revokeFor(invalidation.NotAllowed, nil) // which answers nobody
					synctest.Wait()
					assert.Zero(t, good.Load())
					if closing {
						r.close(cause)
					} else {
						r.publishSet(t, "1", mapOf("A", "a", "1"), mapOf("B", "b", "1"))
					}
					synctest.Wait()
					assert.EqualValues(t, readers, good.Load())
					assert.Equal(t, began, time.Now())
					wg.Wait()
				})
			})
		}
	}
}

// Blocked readers return at once with the cause when Run's context ends, and
// nothing of the store is left when Run has returned.
func TestNoReaderOutlivesTheStore(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := newStore(t, failing(errors.New("no")))
	stop := start(t, s)
	errs := make(chan error, 1000)
	for range cap(errs) {
		go func() {
			_, err := s.Get(context.Background(), key("A", "a"))
			errs <- err
		}()
	}
	for s.Status().Watch.LastError == nil {
		runtime.Gosched()
	}
	cause := errors.New("the end")
	stop(cause)
	for range cap(errs) {
		err := <-errs
		require.ErrorIs(t, err, invalidation.Closed)
		require.ErrorIs(t, err, cause)
	}
	goleak.VerifyNone(t, before)
}

// An end that cannot be explained: whoever learns from the token that it is over
// finds out why at the store. There are so many of them that the first ask while
// the end is still being told to the others.
func TestNoUnexplainedEnd(t *testing.T) {
	for reason, end := range map[invalidation.Reason]func(r *rig){
		invalidation.Closed:    func(r *rig) { r.close(errTest) },
		invalidation.Requested: func(r *rig) { r.store.Revoke(r.Token(), errTest) },
		invalidation.Forbidden: func(r *rig) { r.revokeFor(invalidation.NotAllowed, errTest) },
	} {
		r := newRig(t)
		r.publishSet(t, "1", mapOf("A", "a", "1"))
		tok := r.Token()
		var wg sync.WaitGroup
		for range 3000 {
			wg.Add(1)
			context.AfterFunc(tok.Context(), func() {
				defer wg.Done()
				if reason != invalidation.Closed && r.Token() == tok {
					t.Errorf("ended for %s, and no token follows", reason)
				}
				_, err := r.Snapshot()
				if !errors.Is(err, reason) || !errors.Is(err, errTest) {
					t.Errorf("ended for %s, and the error is %v", reason, err)
				}
				if s, _ := r.Stale(); s != nil && reason == invalidation.Forbidden {
					t.Errorf("ended for %s, and there is data", reason)
				}
			})
		}
		end(r)
		wg.Wait()
	}
}

// Hook before the end: a revoke hook that is called while the generation can
// still be read, or while work under its token goes on. The revocation is held
// up where it is logged, so that the hook runs as early as it can.
func TestNoHookBeforeTheEnd(t *testing.T) {
	for _, closing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.publishSet(t, "1", mapOf("A", "a", "1"))
			tok := r.Token()
			called := make(chan struct{})
			r.OnRevoke(func(rev *invalidation.Revocation) {
				defer close(called)
				_, err := r.Snapshot()
				assert.ErrorIs(t, err, ErrNotReady)
				assert.ErrorIs(t, err, rev.Reason)
				assert.Equal(t, token.Revoked, tok.State())
				assert.Same(t, rev, context.Cause(tok.Context()))
			})
			r.hearLog(func(message string) {
				if message == "Store is not ready" {
					<-called
				}
			})
			if closing {
				r.close(errors.New("the end"))
			} else {
				r.store.Revoke(tok, nil)
			}
			synctest.Wait()
		})
	}
}

// The same for ready hooks: they find the store ready with the whole set.
func TestNoReadyHookBeforeTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		called := make(chan struct{})
		r.OnReady(func(tok *token.Token) {
			defer close(called)
			s, err := r.Snapshot()
			if assert.NoError(t, err) {
				assert.Same(t, tok, s.Token())
				assert.Equal(t, 1, s.Len())
			}
		})
		r.hearLog(func(string) { <-called })
		r.publishSet(t, "1", mapOf("A", "a", "1"))
		synctest.Wait()
	})
}

// Data served after a 403 (guarantee 11): not even those who read old data
// knowingly get it.
func TestNoDataAfterARefusal(t *testing.T) {
	for seen, reason := range map[invalidation.Sighting]invalidation.Reason{
		invalidation.NotKnown:     invalidation.Unauthorized,
		invalidation.NotAllowed:   invalidation.Forbidden,
		invalidation.NotServed:    invalidation.ResourceGone,
		invalidation.NotWatchable: invalidation.Unsupported,
	} {
		t.Run(string(reason), func(t *testing.T) {
			r := newRig(t)
			r.publishSet(t, "1", mapOf("A", "a", "1"))
			r.revokeFor(seen, errors.New("no"))
			_, err := r.Snapshot()
			assert.ErrorIs(t, err, reason)
			_, err = r.Get(over(), key("A", "a"))
			assert.ErrorIs(t, err, reason)
			assert.False(t, apierrors.IsNotFound(err))
			_, err = r.List(over())
			assert.ErrorIs(t, err, reason)
			stale, age := r.Stale()
			assert.Nil(t, stale)
			assert.Zero(t, age)
			assert.Zero(t, r.Status().Objects)
		})
	}
}

// The program may have revoked the token before; the data goes all the same.
func TestNoDataAfterARefusalOfARevokedToken(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", mapOf("A", "a", "1"))
	require.True(t, r.store.Revoke(r.Token(), nil))
	stale, _ := r.Stale()
	require.NotNil(t, stale)
	r.revokeFor(invalidation.NotAllowed, errors.New("no"))
	stale, _ = r.Stale()
	assert.Nil(t, stale)
	assert.Equal(t, token.Pending, r.Token().State())

	r.Begin() // the next attempt is refused as well, and by now that is the reason
	r.revokeFor(invalidation.NotAllowed, errors.New("no"))
	_, err := r.Snapshot()
	assert.ErrorIs(t, err, invalidation.Forbidden)
}

// Data served after a 403, in between: whoever has heard of the refusal finds
// the data gone, at whatever moment it asks.
func TestNoDataOnceARefusalIsKnown(t *testing.T) {
	r := newRig(t)
	while(func() {
		known := r.Status().Revocation // before the read: what was read by then was not refused
		s, _ := r.Stale()
		if s != nil && known != nil && known.Reason == invalidation.Forbidden && s.Token().Generation() <= known.Generation {
			t.Errorf("generation %d ended Forbidden, and its data is read", s.Token().Generation())
		}
	}, func() {
		for i := range 10_000 {
			r.publishSet(t, strconv.Itoa(i+1), mapOf("A", "a", "1"))
			r.revokeFor(invalidation.NotAllowed, nil)
			if t.Failed() {
				return
			}
		}
	})
}

// Refusal that is not explained: a reader that finds the data gone is told why,
// also in the moment before the token ends.
func TestNoUnexplainedRefusal(t *testing.T) {
	for range 300 {
		r := newRig(t)
		r.publishSet(t, "1", mapOf("A", "a", "1"))
		while(func() {
			if _, err := r.Snapshot(); err != nil && !errors.Is(err, invalidation.Forbidden) {
				t.Errorf("the server has refused, and the error is %v", err)
			}
		}, func() { r.revokeFor(invalidation.NotAllowed, errTest) })
		if t.Failed() {
			return
		}
	}
}

// A proof is about a set: where the data was dropped there is none to prove. Here
// the refusal comes while a new set waits for its token, for damping, and is no
// news, since a refusal ended the token before.
func TestNoProofOfDroppedData(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", mapOf("A", "a", "1"))
	r.revokeFor(invalidation.NotAllowed, errTest)
	r.Begin()
	require.NoError(t, r.Build(watch.Added, mapOf("A", "a", "1")))
	r.mu.Lock()
	r.damping.until = time.Now().Add(time.Hour)
	r.mu.Unlock()
	require.NotZero(t, r.Publish("2", watcher.Proof{AsOf: time.Now()}))
	r.revokeFor(invalidation.NotAllowed, errTest)
	r.undamp()
	r.Prove(watcher.Proof{AsOf: time.Now()})
	s, err := r.Snapshot()
	assert.Nil(t, s)
	assert.ErrorIs(t, err, ErrNotReady)
	assert.Equal(t, token.Pending, r.Token().State())
}

// C34: half-filled set. 10,000 objects are listed again in pages, each with a
// new version; readers see all old or all new.
func TestC34NoHalfFilledSet(t *testing.T) {
	const objects, page = 10_000, 500
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept=%v", kept), func(t *testing.T) {
			r := newRig(t)
			list := func(version string) {
				r.Begin()
				for i := range objects {
					require.NoError(t, r.Build(watch.Added, mapOf(strconv.Itoa(i%7), strconv.Itoa(i), version)))
					if i%page == 0 {
						runtime.Gosched()
					}
				}
				r.put(t, version)
			}
			list("1")
			var reads, fails atomic.Int64
			while(func() {
				snapshot, err := r.Snapshot()
				if err != nil {
					fails.Add(1)
					runtime.Gosched()
					return
				}
				reads.Add(1)
				all, err := snapshot.List()
				if err != nil || len(all) != objects {
					t.Errorf("%d objects of %d", len(all), objects)
					return
				}
				for _, obj := range all {
					if obj.ResourceVersion != all[0].ResourceVersion {
						t.Errorf("versions %s and %s in one set", obj.ResourceVersion, all[0].ResourceVersion)
						return
					}
				}
			}, func() {
				for i := range 4 {
					if !kept {
						r.revokeFor(invalidation.VersionExpired, nil)
						_, err := r.Snapshot()
						require.ErrorIs(t, err, invalidation.Relist)
					}
					list(strconv.Itoa(i + 2))
					for seen := reads.Load(); reads.Load() < seen+2 && !t.Failed(); {
						runtime.Gosched()
					}
				}
			})
			t.Logf("%d reads, %d refused", reads.Load(), fails.Load())
		})
	}
}

// False state on relist: an object that was there before and after is never
// absent, and one that was deleted meanwhile never comes back.
func TestNoFalseStateOnRelist(t *testing.T) {
	r := newRig(t)
	r.publishSet(t, "1", mapOf("A", "stays", "1"), mapOf("A", "goes", "1"))
	var gone atomic.Bool // the relist that no longer has it was published
	while(func() {
		before := gone.Load()
		s, err := r.Snapshot()
		if err != nil {
			return
		}
		if _, err := s.Get(key("A", "stays")); err != nil {
			t.Errorf("an object that was never deleted: %v", err)
		}
		if _, err := s.Get(key("A", "goes")); err == nil && before {
			t.Error("a deleted object is back")
		}
	}, func() {
		for i := range 500 {
			r.revokeFor(invalidation.VersionExpired, nil)
			r.publishSet(t, strconv.Itoa(i+2), mapOf("A", "stays", "1"))
			gone.Store(true)
		}
	})
}

// Overlapping hooks: a ready hook that was registered late, when the store was
// ready already, still runs when the revoke hooks are called.
func TestNoOverlapOfALateReadyHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.publishSet(t, "1")
		synctest.Wait()
		var running atomic.Bool
		r.OnRevoke(func(*invalidation.Revocation) { assert.False(t, running.Load(), "the ready hook has not returned") })
		r.OnReady(func(*token.Token) {
			running.Store(true)
			time.Sleep(time.Second)
			running.Store(false)
		})
		synctest.Wait()
		require.True(t, running.Load())
		r.store.Revoke(r.Token(), nil)
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}

// False revocation: a reader that was held up takes the age of what it had loaded
// for the age of the store.
func TestNoRevocationByALateReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.bound = 10 * time.Second
		r.publishSet(t, "1")
		tok := r.Token()
		loaded := r.current.Load()
		time.Sleep(11 * time.Second)
		r.Prove(watcher.Proof{AsOf: time.Now()}) // between the reader's load and its look at the age
		r.revokeStale(loaded)
		assert.Equal(t, token.Ready, tok.State(), "the store was proven a moment ago")
	})
}

// A log that nobody reads holds up no reader, and nobody who asks for the status.
func TestALogThatBlocksHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		read := make(chan struct{})
		log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(unread(read))))
		r.log.Store(&log)
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.publishSet(t, "1")
			r.revokeFor(invalidation.StreamStuck, nil)
		}()
		synctest.Wait()
		assert.Equal(t, token.Ready, r.Status().State)
		assert.NoError(t, r.NotReady())
		close(read)
		<-done
		assert.Equal(t, token.Pending, r.Status().State)
	})
}

// unread is a log that blocks until it is closed.
type unread chan struct{}

func (u unread) Write(p []byte) (int, error) {
	<-u
	return len(p), nil
}
