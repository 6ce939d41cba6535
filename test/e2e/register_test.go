package e2e

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kube-safestore/kube-safestore/safestore"
	"github.com/kube-safestore/kube-safestore/test/internal/gateway"
	"github.com/kube-safestore/kube-safestore/test/internal/subject"
)

// A counter is a register behind a gateway that ends, stalls and refuses watches at random,
// in the set-ups that other tests do not have: of one namespace, where kube-apiserver sends
// few bookmarks, with short watches, with audits, and with bounds from 5 to 30 seconds. No
// read that succeeds misses what was committed as long ago as its bound, without any slack.
func TestRegisterInUnusualSetUps(t *testing.T) {
	t.Parallel()
	e := share(t)
	tests := map[string]func(*testing.T){}
	for name, o := range map[string]safestore.Options{
		"bound of 5s":                within(5 * time.Second),
		"bound of 5s, short watches": shortWatches(within(5 * time.Second)),
		"bound of 10s, audits":       audited(within(10 * time.Second)),
		"bound of 10s, both":         audited(shortWatches(within(10 * time.Second))),
		"bound of 30s":               within(30 * time.Second),
		"bound of 30s, both":         audited(shortWatches(within(30 * time.Second))),
	} {
		tests[name] = func(t *testing.T) {
			seed := rand.Uint64()
			rnd := rand.New(rand.NewPCG(seed, 1))
			g, config := throughGateway(t, e.Config())
			namespace := e.namespace(t)
			c := e.count(t, namespace)
			s := subject.Typed(t, config, subject.Options{Store: o, Namespace: namespace})
			s.Start(t)
			s.AwaitReady(t)
			r := watchReads(t, s, c, o.MaxStaleness)
			for range 12 {
				disturb(g, rnd)
				pass(t, time.Duration(rnd.Int64N(int64(3*time.Second))))
			}
			g.StallNew(false)
			g.Answer(nil)
			g.Release()
			g.End()
			pass(t, time.Second)
			s.AwaitReady(t)
			r.stop()
			t.Logf("seed %d: %v", seed, r)
			assert.Positive(t, r.oldest, "reads have succeeded")
		}
	}
	together(t, tests)
}

func shortWatches(o safestore.Options) safestore.Options {
	o.Watch.WatchTimeout = time.Second
	return o
}

func audited(o safestore.Options) safestore.Options {
	o.Watch.AuditInterval = 2 * time.Second
	return o
}

// disturb has one thing go wrong, or right again.
func disturb(g *gateway.Gateway, rnd *rand.Rand) {
	switch rnd.IntN(7) {
	case 0:
		g.End()
	case 1:
		g.Stall()
	case 2:
		g.StallNew(rnd.IntN(2) == 0)
		g.End()
	case 3:
		g.Release()
	case 4:
		g.DropBookmarks()
	case 5:
		g.Answer(func(*http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusInternalServerError, Body: http.NoBody}
		})
	default:
		g.Answer(nil)
	}
}
