package safestore

import (
	"context"
	"errors"

	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// NotReady returns nil if all members are ready now, else a [*GroupError] that
// says which are not, and why. It does not wait.
func (g *Group) NotReady() error {
	if _, err := g.ready(); err != nil {
		return err
	}
	return nil
}

// ready returns the token, if all members can be read.
func (g *Group) ready() (*token.Token, error) {
	// In this order: what is found ready under a token that then still is ready
	// was ready together.
	t := g.tokens.Current()
	e := g.explain(nil)
	if len(e.Members) > 0 || t.State() != token.Ready {
		return nil, e
	}
	return t, nil
}

// WaitReady waits until all members are ready and returns the group's token. It
// fails with a [*GroupError] when ctx ends, when the group or a member is closed,
// and, after a short while, if Run is not called for a member.
func (g *Group) WaitReady(ctx context.Context) (*token.Token, error) {
	for {
		moved := g.progress.wait()
		t, err := g.ready()
		if err == nil {
			return t, nil
		}
		if !g.waitStarted(ctx) || errors.Is(err, invalidation.Closed) {
			return nil, g.explain(endOf(ctx))
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, g.explain(endOf(ctx))
		}
	}
}
