// Bench measures SafeStore beside its peers and prints one table for each
// operation: the medians of several rounds, and the ratios to SafeStore. Within a
// round all contenders take their turn, in another order each time, so that what
// else the machine does meanwhile hits all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/kube-safestore/kube-safestore/test/bench"
)

func main() {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	size := flags.Int("size", 100_000, "`number` of pods")
	rounds := flags.Int("rounds", 5, "`number` of rounds; the median counts")
	benchtime := flags.Duration("benchtime", 100*time.Millisecond, "least `time` of each measurement")
	only := flags.String("run", "", "measure only operations that match this `regexp`")
	_ = flags.Parse(os.Args[1:]) // it exits by itself
	matching, err := regexp.Compile(*only)
	if err != nil {
		log.Fatalf("bench: -run: %v", err)
	}
	if *rounds < 1 {
		log.Fatal("bench: -rounds: at least one")
	}
	testing.Init()
	if err := flag.Set("test.benchtime", benchtime.String()); err != nil {
		log.Fatalf("bench: -benchtime: %v", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *size, *rounds, matching); err != nil {
		log.Fatalf("bench: %v", err)
	}
}

func run(ctx context.Context, out io.Writer, size, rounds int, matching *regexp.Regexp) error {
	suite, err := bench.New(ctx, size)
	if err != nil {
		return err
	}
	defer suite.Close()
	fmt.Fprintf(out, "%d pods, %d rounds, %s, GOMAXPROCS=%d\n", size, rounds, runtime.Version(), runtime.GOMAXPROCS(0))
	for _, operation := range suite.Operations() {
		if !matching.MatchString(operation.Name) {
			continue
		}
		results, err := measure(ctx, operation, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", operation.Name, err)
		}
		if err := tabulate(out, operation, results); err != nil {
			return err
		}
	}
	return nil
}
