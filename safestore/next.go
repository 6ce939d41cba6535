package safestore

import (
	"context"

	"github.com/kube-safestore/kube-safestore/token"
)

// WaitNext waits until the store is ready under a later token than last, and returns
// it: for a loop that works once for each generation. With a nil last it is
// [Store.WaitReady], and its errors always are. A generation that has come and gone
// meanwhile is not returned.
func (s *Store[T]) WaitNext(ctx context.Context, last *token.Token) (*token.Token, error) {
	return waitNext(ctx, s, last)
}

// WaitNext waits as [Store.WaitNext] does, for the group's token.
func (g *Group) WaitNext(ctx context.Context, last *token.Token) (*token.Token, error) {
	return waitNext(ctx, g, last)
}

func waitNext(ctx context.Context, r Readiness, last *token.Token) (*token.Token, error) {
	for {
		t, err := r.WaitReady(ctx)
		if err != nil || last == nil || t.Generation() > last.Generation() {
			return t, err
		}
		select {
		case <-t.Context().Done(): // the store says why, if no token follows
		case <-ctx.Done(): // and so does WaitReady
			if t, err := r.WaitReady(ctx); err != nil {
				return t, err
			}
			return nil, endOf(ctx)
		}
	}
}
