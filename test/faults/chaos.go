package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
)

// Chaos returns a fault that is a random sequence of faults, over one long-lived
// cache of each kind. The same seed gives the same sequence; 0 chooses one.
func Chaos(seed uint64, lasts time.Duration) Fault {
	for seed == 0 {
		seed = rand.Uint64()
	}
	return Fault{
		Name:    fmt.Sprintf("chaos-%d", seed),
		Injects: fmt.Sprintf("A random sequence of faults for %v, one after another and at the same time, with pauses.", lasts),
		Right:   "Whatever comes: an answer is within the bound, or it is an error that says why, and when all is well the store is ready by itself.",
		Heals:   time.Minute,
		Expect: Expect{Reasons: []invalidation.Reason{
			invalidation.Stale, invalidation.Stuck, invalidation.Relist, invalidation.BadData, invalidation.Requested,
		}},
		Inject: func(ctx context.Context, s *Stage) error {
			return s.chaos(ctx, rand.New(rand.NewPCG(seed, seed)), lasts)
		},
	}
}

// disturbances are what a sequence is made of: each begins something, and returns
// what ends it.
var disturbances = []struct {
	name  string
	begin func(*Stage) (end func() error, err error)
}{
	{"watches stall", func(s *Stage) (func() error, error) {
		s.Gateway.Stall()
		return s.release, nil
	}},
	{"watches stall, new ones too", func(s *Stage) (func() error, error) {
		s.Gateway.StallNew(true)
		s.Gateway.Stall()
		return s.release, nil
	}},
	{"watches end", func(s *Stage) (func() error, error) {
		s.Gateway.End()
		return nothing, nil
	}},
	{"429", answered(apierrors.NewTooManyRequests("the server is busy", 1))},
	{"500", answered(apierrors.NewInternalError(errChaos))},
	{"410", answered(apierrors.NewResourceExpired("the version is gone"))},
	{"truncated", edited(func(event []byte) ([]byte, bool) { return event[:len(event)/2], false })},
	{"garbled", edited(func(event []byte) ([]byte, bool) { return []byte("#\n"), true })},
	{"no bookmarks", func(s *Stage) (func() error, error) {
		s.Gateway.DropBookmarks()
		s.Gateway.End()
		return s.unedited, nil
	}},
	{"no time limits", func(s *Stage) (func() error, error) {
		s.Gateway.Edit(func(query url.Values) { query.Del("timeoutSeconds") })
		return func() error { s.Gateway.Edit(func(url.Values) {}); return nil }, nil
	}},
	{"stopped", func(s *Stage) (func() error, error) {
		return func() error { return s.signal(syscall.SIGCONT) }, s.signal(syscall.SIGSTOP)
	}},
	{"revoked", func(s *Stage) (func() error, error) {
		for _, p := range s.Processes {
			if err := p.Consume(system.Well); err != nil {
				return nil, err
			}
		}
		return nothing, nil
	}},
}

var errChaos = errors.New("chaos")

func nothing() error { return nil }

func (s *Stage) release() error {
	s.Gateway.Release()
	return nil
}

func (s *Stage) unedited() error {
	s.Gateway.EditEvents(nil)
	s.Gateway.End()
	return nil
}

func answered(with *apierrors.StatusError) func(*Stage) (func() error, error) {
	return func(s *Stage) (func() error, error) {
		s.Gateway.Answer(func(*http.Request) *http.Response { return refusal(with) })
		s.Gateway.End()
		return func() error { s.Gateway.Answer(nil); return nil }, nil
	}
}

func edited(breaks func([]byte) ([]byte, bool)) func(*Stage) (func() error, error) {
	return func(s *Stage) (func() error, error) {
		s.Gateway.EditEvents(atFourth(breaks))
		s.Gateway.End()
		return s.unedited, nil
	}
}

// The sequence is counted in steps, so that a seed gives the same one however
// fast the machine is. There is a disturbance more in one of eight, and each lasts
// up to twenty.
const (
	step    = 250 * time.Millisecond
	seldom  = 8
	longest = 20
)

// chaos disturbs until the time is over, and then ends all that it began.
func (s *Stage) chaos(ctx context.Context, random *rand.Rand, lasts time.Duration) (err error) {
	ends, until := make([]func() error, len(disturbances)), make([]int, len(disturbances))
	end := func(i int) error {
		s.Log("no longer: %s", disturbances[i].name)
		f := ends[i]
		ends[i] = nil
		return f()
	}
	defer func() {
		for i := range ends {
			if ends[i] != nil {
				err = errors.Join(err, end(i))
			}
		}
	}()
	for now := range int(lasts / step) {
		for i := range ends {
			if ends[i] != nil && until[i] <= now {
				if err := end(i); err != nil {
					return err
				}
			}
		}
		if random.IntN(seldom) == 0 {
			i, length := random.IntN(len(disturbances)), 1+random.IntN(longest)
			if until[i] = now + length; ends[i] == nil {
				s.Log("%s", disturbances[i].name)
				if ends[i], err = disturbances[i].begin(s); err != nil {
					return err
				}
			}
		}
		if err := Pass(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
