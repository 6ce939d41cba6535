package subject

import (
	"fmt"
	"sync"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// Diary is what the hooks of a store were told, in order.
type Diary struct {
	mu      sync.Mutex
	entries []string
	wrong   []string
	ready   uint64 // generation, zero while not ready
	last    uint64
}

// KeepDiary registers hooks that write a diary. Stop the store to have it
// complete.
func KeepDiary(s Store) *Diary {
	d := &Diary{}
	s.OnReady(func(t *token.Token) { d.write(t.Generation(), nil) })
	s.OnRevoke(func(r *invalidation.Revocation) { d.write(r.Generation, r) })
	return d
}

func (d *Diary) write(generation uint64, revoked *invalidation.Revocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry := fmt.Sprintf("ready %d", generation)
	fits := d.ready == 0 && generation > d.last
	if revoked != nil {
		entry = fmt.Sprintf("revoked %d %s", generation, string(revoked.Reason))
		fits = d.ready == generation
	}
	if !fits {
		d.wrong = append(d.wrong, fmt.Sprintf("%q after %q", entry, d.entries))
	}
	d.entries = append(d.entries, entry)
	d.last, d.ready = generation, generation
	if revoked != nil {
		d.ready = 0
	}
}

// Entries returns "ready 1", "revoked 1 Relist" and so on.
func (d *Diary) Entries() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.entries...)
}

// OutOfOrder returns the entries that cannot follow what is before them: per
// generation one ready and then one revoked, generations growing.
func (d *Diary) OutOfOrder() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.wrong...)
}
