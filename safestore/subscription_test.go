package safestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/kube-safestore/kube-safestore/invalidation"
)

// These tests are about the life of a subscription: what it waits for, what it
// costs and how it ends.

// many returns n objects.
func many(n int) []*Map {
	set := make([]*Map, n)
	for i := range set {
		set[i] = mapOf("ns", fmt.Sprint(i), "1")
	}
	return set
}

// C15: caught up means that the handler has returned for all of the set, for each
// subscriber by itself.
func TestC15CaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		slow := func(Change[*Map]) { time.Sleep(time.Millisecond) }
		l := listen(t, r.store, slow)
		synctest.Wait()
		r.publishSet(t, "10", many(1000)...)
		began := time.Now()
		_, err := r.WaitReady(t.Context())
		require.NoError(t, err)
		assert.Zero(t, time.Since(began), "the store is ready at once")
		assert.Nil(t, l.sub.CaughtUp())

		tok, err := l.sub.WaitCaughtUp(t.Context())
		require.NoError(t, err)
		assert.Same(t, r.Token(), tok)
		assert.Same(t, tok, l.sub.CaughtUp())
		assert.Equal(t, 1002*time.Millisecond, time.Since(began), "Init, InitDone and 1,000 objects")
		assert.Len(t, l.has, 1000)

		late := listen(t, r.store, slow)
		began = time.Now()
		synctest.Wait()
		assert.Nil(t, late.sub.CaughtUp(), "another's signal is not its own")
		_, err = late.sub.WaitCaughtUp(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1002*time.Millisecond, time.Since(began))
		assert.Len(t, late.has, 1000)

		// It is not true any more once the token is over, before the handler hears.
		r.reprove()
		assert.Nil(t, l.sub.CaughtUp())
		assert.Zero(t, l.sub.Status().CaughtUp)
		tok, err = l.sub.WaitCaughtUp(t.Context())
		require.NoError(t, err)
		assert.Equal(t, uint64(2), tok.Generation())
		assert.Equal(t, uint64(2), l.sub.Status().CaughtUp)
		l.stop()
		assert.Nil(t, l.sub.CaughtUp(), "nor when nobody listens")
	})
}

func TestWaitCaughtUpFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		sub := r.Subscribe("x")
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		_, err := sub.WaitCaughtUp(short())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `subscription "x" of v1.ConfigMap has not caught up`)
		assert.NotErrorIs(t, err, ErrNotReady, "the store is")

		for c, err := range sub.Changes(t.Context()) {
			require.NoError(t, err)
			assert.Equal(t, Init, c.Type)
			break
		}
		_, err = sub.WaitCaughtUp(short())
		require.ErrorContains(t, err, `subscription "x" of v1.ConfigMap has ended: its loop was left`)

		r.revokeFor(invalidation.StreamStuck, errors.New("stuck"))
		_, err = r.Subscribe("y").WaitCaughtUp(short())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, invalidation.Stuck, "why it cannot")
		r.close(nil)
		_, err = r.Subscribe("y").WaitCaughtUp(t.Context())
		assert.ErrorIs(t, err, invalidation.Closed)
	})
}

func TestChangesEnd(t *testing.T) {
	// end returns the changes of one loop, and the error that ended it.
	end := func(ctx context.Context, s *Subscription[*Map]) (heard []string, err error) {
		for c, e := range s.Changes(ctx) {
			if e != nil {
				err = errors.Join(err, e) // there is only one
				continue
			}
			heard = append(heard, inWords(c))
		}
		return heard, err
	}
	mine := errors.New("mine")
	t.Run("ctx ends", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(mine) })
			heard, err := end(ctx, r.Subscribe("x"))
			assert.Equal(t, []string{"Init 1", "Added a 1", "InitDone 1"}, heard)
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, mine)
			assert.NotErrorIs(t, err, ErrNotReady)
		})
	})
	t.Run("ctx ends in the middle of a set", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			r.revokeFor(invalidation.VersionExpired, nil)
			r.publishSet(t, "20", many(10)...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			told := 0
			for _, err := range r.Subscribe("x").Changes(ctx) {
				if err != nil {
					assert.ErrorIs(t, err, context.Canceled)
					break
				}
				if told++; told == 5 {
					cancel()
				}
			}
			assert.Equal(t, 5, told)
		})
	})
	t.Run("ctx is over", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			heard, err := end(over(), r.Subscribe("x"))
			assert.Empty(t, heard)
			assert.ErrorIs(t, err, context.Canceled)
		})
	})
	t.Run("the store is closed", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			time.AfterFunc(time.Second, func() { r.close(mine) })
			heard, err := end(t.Context(), r.Subscribe("x"))
			assert.Equal(t, []string{"Init 1", "Added a 1", "InitDone 1", "Revoked 1 Closed"}, heard)
			var e *NotReadyError
			require.ErrorAs(t, err, &e)
			assert.ErrorIs(t, err, invalidation.Closed)
			assert.ErrorIs(t, err, mine)
			heard, err = end(t.Context(), r.Subscribe("x"))
			assert.Empty(t, heard)
			assert.ErrorIs(t, err, invalidation.Closed, "it was closed before")
		})
	})
	t.Run("the store is closed before it is ready", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			time.AfterFunc(time.Second, func() { r.close(mine) })
			heard, err := end(t.Context(), r.Subscribe("x"))
			assert.Empty(t, heard)
			assert.ErrorIs(t, err, invalidation.Closed)
		})
	})
	t.Run("Run is not called", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			heard, err := end(t.Context(), newStore(t, newScripted()).Subscribe("x"))
			assert.Empty(t, heard)
			assert.ErrorIs(t, err, ErrNotStarted)
		})
	})
	t.Run("there are two", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			l := listen(t, r.store, nil)
			synctest.Wait()
			heard, err := end(t.Context(), l.sub)
			assert.Empty(t, heard)
			assert.ErrorIs(t, err, ErrSubscribedTwice)
			l.said("Init 1", "Added a 1", "InitDone 1")
			assert.NotNil(t, l.sub.CaughtUp(), "the first one is as it was")
			r.set(t, "a", "11")
			l.said("Updated a 1 to 11")
		})
	})
	t.Run("options that make no sense", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			for _, opt := range []ListOption{Sorted(), Limit(1), ByIndex("x", "y")} {
				heard, err := end(t.Context(), r.Subscribe("x", opt))
				assert.Empty(t, heard)
				assert.ErrorContains(t, err, "only namespaces and labels can be subscribed to")
			}
		})
	})
	t.Run("it is left, and begun again", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			sub := r.Subscribe("x")
			for range 2 {
				var heard []string
				for c, err := range sub.Changes(t.Context()) {
					require.NoError(t, err)
					if heard = append(heard, inWords(c)); len(heard) == 2 {
						break
					}
				}
				assert.Equal(t, []string{"Init 1", "Added a 1"}, heard, "each loop begins with nothing")
				assert.Empty(t, r.Status().Subscriptions)
			}
		})
	})
}

func TestHandleEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		sub := r.Subscribe("x")
		assert.Panics(t, func() { _ = sub.Handle(t.Context(), nil) })
		nothing := func(Change[*Map]) error { return nil }
		assert.NoError(t, sub.Handle(over(), nothing), "as Run")

		mine := errors.New("mine")
		err := sub.Handle(t.Context(), func(c Change[*Map]) error {
			if c.Type == Added {
				return mine
			}
			return nil
		})
		assert.ErrorIs(t, err, mine)
		assert.EqualError(t, err, `safestore: subscription "x" of v1.ConfigMap: Added ns/a: mine`)

		ctx, cancel := context.WithCancel(t.Context())
		r.hearLog(func(message string) { t.Errorf("%s: a handler may end with its context", message) })
		assert.NoError(t, sub.Handle(ctx, func(Change[*Map]) error { cancel(); return ctx.Err() }))

		r.hearLog(func(string) {})
		r.close(mine)
		assert.ErrorIs(t, sub.Handle(t.Context(), nothing), invalidation.Closed)
	})
}

// C38: a panic is never swallowed. It ends the program, or by choice only its own
// subscription, with an error; others go on.
func TestC38Panic(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var logged []string
		r.hearLog(func(message string) { logged = append(logged, message) })
		sibling := listen(t, r.store, nil)
		sibling.said("Init 1", "Added a 1", "InitDone 1")
		secret := "the secret in " // what a panic may quote
		fails := func(c Change[*Map]) error {
			if c.Type == Added && c.Key.Name == "b" {
				panic(secret + c.Key.String())
			}
			return nil
		}
		sub := r.Subscribe("x")
		handled := make(chan error)
		go func() { handled <- sub.Handle(t.Context(), Isolate(fails)) }()
		_, err := sub.WaitCaughtUp(t.Context())
		require.NoError(t, err)
		r.set(t, "b", "11")
		err = <-handled
		assert.EqualError(t, err, `safestore: subscription "x" of v1.ConfigMap: Added ns/b: handler panicked with a string`)
		assert.Equal(t, []string{"Subscription ended"}, logged)
		assert.Nil(t, sub.CaughtUp())
		_, err = sub.WaitCaughtUp(t.Context())
		assert.ErrorContains(t, err, "handler panicked")
		assert.Len(t, r.Status().Subscriptions, 1, "the sibling")
		sibling.said("Added b 11")

		// What the Go runtime says is told: it does not quote objects.
		var none map[string]string
		err = sub.Handle(t.Context(), Isolate(func(Change[*Map]) error { none["x"] = "y"; return nil }))
		assert.ErrorContains(t, err, "Init: handler panicked: assignment to entry in nil map")

		assert.PanicsWithValue(t, secret+"ns/b", func() { _ = sub.Handle(t.Context(), fails) })
		assert.Nil(t, sub.CaughtUp())
		assert.Len(t, r.Status().Subscriptions, 1)
		assert.Panics(t, func() { Isolate[*Map](nil) })
	})
}

// The stack of an isolated panic is in the log, where it is looked for.
func TestC38PanicIsLoggedWithItsStack(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		values := map[any]any{}
		log := klog.New(valueSink{logSink(func(string) {}), values})
		r.log.Store(&log)
		err := r.Subscribe("x").Handle(t.Context(), Isolate(func(Change[*Map]) error { panic("secret") }))
		require.Error(t, err)
		assert.Contains(t, values["stack"], "TestC38PanicIsLoggedWithItsStack")
		assert.NotContains(t, fmt.Sprint(values), "secret")
	})
}

// valueSink is a logSink that keeps the values too.
type valueSink struct {
	logSink
	values map[any]any
}

func (s valueSink) WithValues(kv ...any) klog.LogSink {
	for i := 0; i+1 < len(kv); i += 2 {
		s.values[kv[i]] = kv[i+1]
	}
	return s
}

// C41: a blocked subscriber keeps two sets in memory, however much happens, and
// everybody else goes on.
func TestC41BlockedSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects, rounds = 1000, 1000
		payload := func(m *Map) *Map {
			m.Annotations = map[string]string{"key": string(make([]byte, 500))}
			return m
		}
		r := newRig(t)
		r.Begin()
		for _, m := range many(objects) {
			require.NoError(t, r.Build(watch.Added, payload(m)))
		}
		r.put(t, "1000")
		one := heap() // with one set

		b := newBlocker()
		blocked, sibling := listen(t, r.store, b.before), r.Subscribe("sibling")
		b.pass(2)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		latest := map[types.NamespacedName]string{}
		go func() {
			ended <- sibling.Handle(ctx, func(c Change[*Map]) error {
				if c.New != nil {
					latest[c.Key] = c.New.ResourceVersion
				}
				return nil
			})
		}()
		synctest.Wait()
		for round := range rounds {
			edit := r.edit(r.current.Load().set)
			version := fmt.Sprint(1001 + round)
			for _, m := range many(objects) {
				m.ResourceVersion = version
				require.NoError(t, edit.set(payload(m)))
			}
			r.advance(edit.finish(), version)
			if round%100 == 0 {
				synctest.Wait()
				assert.Equal(t, version, latest[key("ns", "0")], "the sibling does not wait")
			}
		}
		synctest.Wait()
		assert.Less(t, heap(), 5*one, "the set it is being handed and the store's own, and room to spare")

		time.Sleep(time.Minute)
		status := r.Status().Subscriptions
		assert.Equal(t, []SubscriptionStatus{
			{Name: "listener", Lag: time.Minute, Changes: 1},
			{Name: "sibling", CaughtUp: 1, Changes: status[1].Changes},
		}, status)
		assert.GreaterOrEqual(t, status[1].Changes, uint64(objects*rounds/100))

		b.open()
		synctest.Wait()
		assert.Equal(t, SubscriptionStatus{Name: "listener", CaughtUp: 1, Changes: 2 * objects}, blocked.sub.Status(),
			"the set, and one change for each object")
		blocked.same(r.current.Load())
		stop()
		assert.NoError(t, <-ended)
	})
}

// heap returns how much is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Lag counts from when a change could have been handed out.
func TestSubscriptionLag(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		b := newBlocker()
		l := listen(t, r.store, b.before)
		lag := func() time.Duration { synctest.Wait(); return l.sub.Status().Lag }
		b.pass(3)
		time.Sleep(time.Hour)
		assert.Zero(t, lag(), "nothing is waiting")

		r.set(t, "a", "11")
		assert.Zero(t, lag())
		time.Sleep(time.Second)
		assert.Equal(t, time.Second, lag())
		r.set(t, "b", "12") // waits behind a
		time.Sleep(time.Second)
		assert.Equal(t, 2*time.Second, lag())
		b.pass(1)
		assert.Equal(t, 2*time.Second, lag(), "b, for a second at least and for no longer than a was")
		time.Sleep(time.Second)
		b.pass(1)
		assert.Zero(t, lag())

		time.Sleep(time.Hour)
		r.revokeFor(invalidation.VersionExpired, nil)
		b.pass(1)
		time.Sleep(time.Hour)
		assert.Zero(t, lag(), "nothing can be handed out")
		r.publishSet(t, "20")
		b.pass(1)
		time.Sleep(time.Second)
		assert.Equal(t, time.Second, lag())
		b.open()
		assert.Zero(t, lag())
	})
}

// Cancelling at any moment frees everything: the store keeps nothing of a
// subscription that is over, and no goroutine is left (goleak, in TestMain).
func TestSubscribersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var subscribers sync.WaitGroup
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 4000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(3000))*time.Millisecond)
			begins := time.Duration(rnd.IntN(10_000)) * time.Millisecond
			pause, leaves := time.Duration(rnd.IntN(100))*time.Millisecond, rnd.IntN(20)
			subscribers.Go(func() {
				defer cancel()
				time.Sleep(begins)
				sub, told := r.Subscribe("short"), 0
				var end error
				for c, err := range sub.Changes(ctx) {
					if err != nil {
						end = err
						continue
					}
					if told++; told == leaves {
						break
					}
					if c.Type != Revoked {
						time.Sleep(pause)
					}
				}
				if end != nil {
					assert.ErrorIs(t, end, context.DeadlineExceeded)
				}
				assert.Nil(t, sub.CaughtUp())
				assert.Zero(t, sub.Status().Lag)
			})
		}
		version := 10
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			version++
			switch rnd.IntN(4) {
			case 0:
				r.publishSet(t, fmt.Sprint(version), many(rnd.IntN(20))...)
			case 1:
				r.revokeFor(invalidation.VersionExpired, nil)
			case 2:
				r.reprove()
			default:
				if r.current.Load().complete {
					r.set(t, fmt.Sprint(rnd.IntN(20)), fmt.Sprint(version))
				}
			}
			r.Status()
		}
		subscribers.Wait()
		assert.Empty(t, r.Status().Subscriptions)
		assert.Empty(t, r.subscriptions.running)
	})
}
