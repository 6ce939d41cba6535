package watcher_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-safestore/kube-safestore/internal/wiretest"
	"github.com/kube-safestore/kube-safestore/watcher"
)

// progress is what the status says when everything is quiet.
func (r *rig) progress() watcher.Progress {
	synctest.Wait()
	return r.watch.Status().Progress
}

func (r *rig) fill(n int) {
	for i := range n {
		r.put(fmt.Sprintf("map-%03d", i))
	}
}

// Of a list in pages the server says how many objects are left.
func TestProgressOfPages(t *testing.T) {
	onWire(t, watcher.Options{PageSize: 20}, func(t *testing.T, r *rig) {
		r.onLists()
		r.fill(100)
		r.Break(wiretest.Later, wiretest.Slow(5*time.Second))
		began := time.Now()
		r.start()
		assert.Equal(t, watcher.Progress{Objects: 20, Total: 100, Since: began}, r.progress(), "no time has passed")
		after(12 * time.Second)
		p := r.progress()
		assert.EqualValues(t, 60, p.Objects)
		assert.EqualValues(t, 100, p.Total)
		assert.InDelta(t, 5, p.Rate, 1e-9)
		assert.Equal(t, 8*time.Second, p.Left)
		assert.Equal(t, "60 of about 100 objects, 8s left", p.String())
		r.put("one more than there was") // it is not of this list
		after(8 * time.Second)
		assert.Len(t, r.names(), 101)
		assert.Zero(t, r.progress(), "the set is complete")
	})
}

// Without a word of the server, the set before is the measure; the first one has
// none.
func TestProgressByTheSetBefore(t *testing.T) {
	for name, paged := range map[string]bool{"WatchList": false, "selection": true} {
		t.Run(name, func(t *testing.T) {
			onWire(t, watcher.Options{PageSize: 20}, func(t *testing.T, r *rig) {
				if paged { // of a selection, a server does not say how much of it is left
					r.onLists()
					r.Break(wiretest.Lists, wiretest.EditList(func(l *wiretest.List) { l.Metadata.RemainingItemCount = nil }))
				}
				r.fill(30)
				slow := func() (heal func()) {
					if paged {
						return r.Break(wiretest.Later, wiretest.Slow(5*time.Second))
					}
					return r.Break(wiretest.Initial, wiretest.Stalled)
				}
				heal := slow()
				r.start()
				assert.Zero(t, r.progress().Total)
				heal()
				r.Resume()
				assert.Len(t, r.names(), 30)

				r.put("a", "b", "c")
				r.maps.Delete("default", "a")
				r.put("b") // once more
				synctest.Wait()
				defer slow()()
				r.watch.Relist()
				p := r.progress()
				assert.EqualValues(t, 32, p.Total, "events count")
				assert.Equal(t, time.Now(), p.Since)
			})
		})
	}
}

// A list that is given up is no progress, and the one after it begins anew.
func TestProgressOfListsThatFail(t *testing.T) {
	onWire(t, watcher.Options{PageSize: 20, MinBackoff: time.Second, MaxBackoff: time.Second}, func(t *testing.T, r *rig) {
		r.onLists()
		r.fill(50)
		heal := r.Break(wiretest.Later, wiretest.Answer(apierrors.NewInternalError(errTrouble)))
		r.start()
		assert.Equal(t, "waiting to retry", r.watch.Status().Phase)
		assert.Zero(t, r.progress())
		heal()
		defer r.Break(wiretest.Later, wiretest.Slow(time.Hour))()
		after(3 * time.Second)
		assert.EqualValues(t, 20, r.progress().Objects, "those of the first list do not count")
	})
}

// A WatchList brings changes beside objects: what was deleted again does not
// count twice.
func TestProgressCountsObjectsNotEvents(t *testing.T) {
	onWire(t, watcher.Options{}, func(t *testing.T, r *rig) {
		r.fill(10)
		defer r.Break(wiretest.Initial, wiretest.NoMarker)()
		r.start()
		r.put("map-000", "new")
		r.maps.Delete("default", "map-001")
		assert.EqualValues(t, 10, r.progress().Objects)
	})
}

// lines are those of a log, each from the virtual second that it is from.
func lines(log *bytes.Buffer) []string {
	synctest.Wait()
	var all []string
	for line := range strings.Lines(log.String()) {
		_, stamp, _ := strings.Cut(line, " ")
		minute, _, _ := strings.Cut(stamp, ".")
		_, said, _ := strings.Cut(line, "] ")
		all = append(all, strings.TrimPrefix(minute, "00:")+" "+strings.TrimSpace(said))
	}
	return all
}

// logged is what of a watcher is logged at the default verbosity.
func (r *rig) logged() *bytes.Buffer {
	var log bytes.Buffer
	r.log = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	return &log
}

// A long sync is logged at a sensible pace, through lists that fail, until it is
// over; a short one is not.
func TestLongSyncIsLogged(t *testing.T) {
	onWire(t, watcher.Options{PageSize: 20, MinBackoff: time.Second, MaxBackoff: time.Second}, func(t *testing.T, r *rig) {
		log := r.logged()
		r.onLists()
		r.fill(100)
		down := r.Break(wiretest.Lists, wiretest.Answer(apierrors.NewInternalError(errTrouble)))
		r.start()
		after(15 * time.Second)
		down()
		slow := r.Break(wiretest.Later, wiretest.Slow(20*time.Second))
		for r.progress().Objects == 0 {
			after(100 * time.Millisecond)
		}
		after(time.Minute)
		all := lines(log)
		if assert.Len(t, all, 3) {
			assert.Regexp(t, `^00:10 "Still syncing" phase="(waiting to retry|listing)" elapsed="10s" objects=0 failures=\d+ `+
				`err="list: Internal error occurred: the server is in trouble"$`, all[0])
			assert.Regexp(t, `^00:40 "Still syncing" phase="listing" elapsed="40s" objects=40 total=100 left="\d+s" perSecond=2 failures=`, all[1])
			assert.Regexp(t, `^01:10 "Still syncing" phase="listing" elapsed="1m10s" objects=60 total=100 left="\d+s" perSecond=1 failures=`, all[2])
		}
		slow()
		assert.Len(t, r.names(), 100)
		log.Reset()

		for range 3 { // lists that take their time, but not too much of it
			heal := r.Break(wiretest.Later, wiretest.Slow(2*time.Second))
			r.watch.Relist()
			after(9 * time.Second)
			heal()
		}
		after(time.Hour)
		assert.Empty(t, lines(log), "short ones, and quiet")
	})
}

// One that hangs is logged as well, although nothing happens.
func TestSyncThatHangsIsLogged(t *testing.T) {
	onWire(t, watcher.Options{InitialEventsTimeout: time.Hour}, func(t *testing.T, r *rig) {
		log := r.logged()
		r.fill(3)
		r.Break(wiretest.Initial, wiretest.NoMarker)
		r.start()
		after(11 * time.Second)
		assert.Equal(t, []string{`00:10 "Still syncing" phase="streaming the initial set" elapsed="10s" objects=3 perSecond=0`}, lines(log))
	})
}
