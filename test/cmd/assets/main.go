// Assets prints the directory of the kube-apiserver and etcd that the demo and
// the tests run, and builds them first when they are missing.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := cluster.Assets(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
