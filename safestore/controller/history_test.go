package controller_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-safestore/kube-safestore/safestore/controller"
	"github.com/kube-safestore/kube-safestore/token"
)

// history is what happened, in the order in which it did. It needs no clock: what
// must not follow on something else is found out when it is entered.
type history struct {
	mu      sync.Mutex
	running map[types.NamespacedName]work
	latest  uint64          // generation of work that has begun
	over    map[uint64]bool // generations of which somebody knows that they are
	entries []string
	wrong   []string
}

type work struct {
	context.Context
	generation uint64
}

func newHistory() *history {
	return &history{running: map[types.NamespacedName]work{}, over: map[uint64]bool{}}
}

// begins enters that work begins.
func (h *history) begins(ctx context.Context, req controller.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	generation := req.Snapshot.Token().Generation()
	h.entryLocked("%s begins under %d", req.Key.Name, generation)
	if other, running := h.running[req.Key]; running {
		h.wrongLocked("%s is worked on under %d already", req.Key, other.generation)
	}
	if generation < h.latest {
		h.wrongLocked("%d begins after %d", generation, h.latest)
	}
	for key, other := range h.running {
		if other.generation < generation && other.Err() == nil {
			h.wrongLocked("%s goes on under %d while %d begins", key, other.generation, generation)
		}
	}
	h.checkLocked(ctx, req)
	h.latest = generation
	h.running[req.Key] = work{ctx, generation}
}

// acts enters what work does to the world, if it may, as a request to a server that
// is made with its context.
func (h *history) acts(ctx context.Context, req controller.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkLocked(ctx, req)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h.entryLocked("%s acts under %d", req.Key.Name, req.Snapshot.Token().Generation())
	return nil
}

// checkLocked finds work that may go on and must not.
func (h *history) checkLocked(ctx context.Context, req controller.Request) {
	t := req.Snapshot.Token()
	over := h.over[t.Generation()] || t.State() == token.Revoked
	if over && ctx.Err() == nil {
		h.wrongLocked("%s may act under %d, which is over", req.Key, t.Generation())
	}
}

// ends enters that work ends.
func (h *history) ends(req controller.Request, how string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entryLocked("%s %s", req.Key.Name, how)
	delete(h.running, req.Key)
}

// ended enters that a generation is over, by somebody who knows.
func (h *history) ended(generation uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entryLocked("%d is over", generation)
	h.over[generation] = true
}

func (h *history) entryLocked(format string, args ...any) {
	h.entries = append(h.entries, fmt.Sprintf(format, args...))
}

func (h *history) wrongLocked(format string, args ...any) {
	h.wrong = append(h.wrong, fmt.Sprintf("after %d entries: ", len(h.entries))+fmt.Sprintf(format, args...))
}

// take returns what has happened since it was called last.
func (h *history) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	entries := h.entries
	h.entries = nil
	return entries
}

func (h *history) faults() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.wrong)
}
