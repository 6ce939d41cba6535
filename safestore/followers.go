package safestore

import (
	"github.com/kube-safestore/kube-safestore/invalidation"
	"github.com/kube-safestore/kube-safestore/token"
)

// move is what a token's followers are told of.
type move struct {
	ready *token.Token             // the token that is ready now; nil if none is
	ended *invalidation.Revocation // why the one before ends; nil if none does
}

// follower is somebody who moves with a token. Both functions are called with the
// lock held under which that token is moved.
type follower struct {
	// move is called after a token became ready, and before anybody can see that one
	// is over.
	move func(move)
	// settled is called when everybody can see the move.
	settled func()
}

// followers are those who move with a token, in no particular order. The zero value
// has none; whoever owns it guards it with the lock under which the token is moved.
type followers map[*follower]struct{}

func (all *followers) add(one follower) *follower {
	if *all == nil {
		*all = followers{}
	}
	(*all)[&one] = struct{}{}
	return &one
}

func (all followers) move(m move) {
	for one := range all {
		one.move(m)
	}
}

func (all followers) settle() {
	for one := range all {
		one.settled()
	}
}
