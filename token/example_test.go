package token_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-safestore/kube-safestore/token"
)

// A source arms one token after the other. Each is ready at most once, and ends
// with a cause.
func ExampleSource() {
	source := token.NewSource(context.Background())
	first := source.Current()
	fmt.Println(first.Generation(), first.State())

	source.Ready(first)
	fmt.Println(first.Generation(), first.State())

	second, _ := source.Revoke(first, errors.New("the watch expired"))
	fmt.Println(first.Generation(), first.State(), context.Cause(first.Context()))
	fmt.Println(second.Generation(), second.State())

	// A late caller means a token that is over, and changes nothing.
	fmt.Println(source.Ready(first), second.State())
	// Output:
	// 1 Pending
	// 1 Ready
	// 1 Revoked the watch expired
	// 2 Pending
	// false Pending
}

// Tie ends work with the request that it is for, or with the token that it
// depends on, whichever ends first.
func ExampleToken_Tie() {
	source := token.NewSource(context.Background())
	ready := source.Current()
	source.Ready(ready)

	request, finish := context.WithCancel(context.Background())
	defer finish()
	ctx, cancel := ready.Tie(request)
	defer cancel()
	fmt.Println(ctx.Err())

	source.Revoke(ready, errors.New("the watch expired"))
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	fmt.Println(request.Err())
	// Output:
	// <nil>
	// the watch expired
	// <nil>
}
