// Command faults runs the fault matrix: see package faults. It exits with 1 if
// SafeStore fails a fault, or a fault cannot be run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/kube-safestore/kube-safestore/test/faults"
)

// settings are what the flags say.
type settings struct {
	faults.Options
	run      string
	list     bool
	json     bool
	pictures string
	markdown string
	chaos    time.Duration
	seed     uint64
}

func main() {
	faults.ServeIfAsked()
	var s settings
	flag.StringVar(&s.run, "run", "", "run only the faults whose names match")
	flag.BoolVar(&s.list, "list", false, "list the faults, and run none")
	flag.BoolVar(&s.json, "json", false, "print one line of JSON for each cell, in place of the table")
	flag.DurationVar(&s.Window, "window", 30*time.Second, "how long a fault lasts")
	flag.DurationVar(&s.Bound, "bound", 10*time.Second, "SafeStore's MaxStaleness, and the yardstick for its peers")
	flag.BoolVar(&s.Peers, "peers", true, "run client-go and controller-runtime as well")
	flag.IntVar(&s.Parallel, "parallel", 4, "how many faults run at the same time on the cluster that they share")
	flag.StringVar(&s.pictures, "pictures", "", "the directory for a picture of each fault; empty for a new one")
	flag.StringVar(&s.markdown, "markdown", "", "also write the matrix to this file, as test/FAULTS.md")
	flag.DurationVar(&s.chaos, "chaos", 0, "run a random sequence of faults for so long, in place of the matrix")
	flag.Uint64Var(&s.seed, "seed", 0, "of the random sequence; 0 chooses one and prints it")
	flag.Parse()
	s.Progress = os.Stderr
	if err := s.do(); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func (s settings) do() error {
	chosen, err := s.choose()
	if err != nil {
		return err
	}
	if s.list {
		for _, f := range chosen {
			fmt.Printf("%-25s %s\n%-25s %s\n", f.Name, f.Injects, "", f.Right)
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	runner := faults.NewRunner(s.Options)
	results := runner.RunAll(ctx, chosen)
	err = runner.Close()
	return errors.Join(err, s.report(results), verdict(results))
}

// choose returns the faults to run.
func (s settings) choose() ([]faults.Fault, error) {
	if s.chaos > 0 {
		return []faults.Fault{faults.Chaos(s.seed, s.chaos)}, nil
	}
	matches, err := regexp.Compile(s.run)
	if err != nil {
		return nil, err
	}
	if s.markdown != "" && (s.run != "" || !s.Peers) {
		return nil, errors.New("-markdown needs all faults and the peers")
	}
	var chosen []faults.Fault
	for _, f := range faults.All() {
		if matches.MatchString(f.Name) {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no fault is called %q", s.run)
	}
	return chosen, nil
}

// report writes everything that is asked for.
func (s settings) report(results []faults.Result) error {
	write := faults.WriteTable
	if s.json {
		write = faults.WriteJSON
	}
	err := write(os.Stdout, results)
	if s.markdown != "" {
		err = errors.Join(err, toFile(s.markdown, func(f *os.File) error { return faults.WriteMarkdown(f, results, s.Options) }))
	}
	dir := s.pictures
	if dir == "" {
		var tempErr error
		if dir, tempErr = os.MkdirTemp("", "faults-"); tempErr != nil {
			return errors.Join(err, tempErr)
		}
	}
	err = errors.Join(err, os.MkdirAll(dir, 0o777))
	for _, r := range results {
		if len(r.Verdicts) > 0 {
			err = errors.Join(err, toFile(filepath.Join(dir, r.Fault.Name+".svg"), func(f *os.File) error { return r.Picture(f) }))
		}
	}
	fmt.Fprintln(os.Stderr, "pictures are in", dir)
	return err
}

func toFile(name string, write func(*os.File) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// verdict is an error if SafeStore does not pass everything.
func verdict(results []faults.Result) error {
	failed := 0
	for _, r := range results {
		if !r.Passed() {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("SafeStore fails %d of %d", failed, len(results))
	}
	return nil
}
