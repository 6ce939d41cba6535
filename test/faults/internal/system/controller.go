package system

import (
	"time"

	"github.com/kube-safestore/kube-safestore/token"
)

// control is a controller in small: it looks at the store again and again, and acts
// on what it sees, as long as the token that it was started under is ready.
func (s *store[T]) control(ready *token.Token, act func(Sample)) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ready.Context().Done():
			return
		}
		seen := Sample{At: time.Now().UnixNano()}
		s.read(&seen)
		if seen.Good && seen.Generation == ready.Generation() && ready.Context().Err() == nil {
			act(seen)
		}
	}
}
