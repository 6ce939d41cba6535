// Command mutants breaks the machine of package watcher and the publish order of package
// safestore on purpose, one line at a time, and tells which tests notice. It fails if one
// break goes unnoticed.
//
//	go -C test run ./cmd/mutants [-run regexp] [-v]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// mutant is one line that is broken.
type mutant struct {
	file string // below the root of the module
	old  string // what is there once
	new  string
	why  string // what would be wrong with it
}

var (
	only    = flag.String("run", "", "only the mutants whose reason matches")
	verbose = flag.Bool("v", false, "show what the tests said")
)

// suites are what a mutant is shown to, from the quickest to the most thorough.
var suites = [][]string{
	{"-timeout=1m", "./watcher"},
	{"-timeout=5m", "-short", "./safestore"},
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "FILE\tWHAT IS BROKEN\tFOUND BY")
	survived := 0
	for _, m := range mutants {
		if !wanted.MatchString(m.why) {
			continue
		}
		killer, err := m.kill("..")
		if err != nil {
			killer = err.Error() // of a mutant, not of the run
			survived++
		}
		if killer == "" {
			survived++
			killer = "NOTHING"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", m.file, m.why, killer)
		fmt.Fprintf(os.Stderr, "%s: %s: %s\n", m.file, m.why, killer)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if survived > 0 {
		return fmt.Errorf("%d breaks go unnoticed", survived)
	}
	return nil
}

// kill returns the tests that notice the mutant, none if they pass.
func (m mutant) kill(root string) (killer string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	for _, suite := range suites {
		args := append([]string{"test", "-overlay", overlay, "-count=1"}, suite...)
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if *verbose {
			fmt.Fprintf(os.Stderr, "%s\n", out)
		}
		if err != nil {
			return failures(out)
		}
	}
	return "", nil
}

// overlay writes the broken file, and what tells the go command to use it.
func (m mutant) overlay(root, dir string) (path string, err error) {
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("what is to be broken is there %d times: %s", n, m.old)
	}
	broken := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(broken, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: broken}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, replace, 0o600)
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failures returns the tests that failed. A mutant that does not compile tests nothing.
func failures(out []byte) (string, error) {
	if strings.Contains(string(out), "[build failed]") {
		return "", fmt.Errorf("it does not compile: %s", out)
	}
	var names []string
	for _, match := range failedTest.FindAllStringSubmatch(string(out), -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "a panic, or a test that does not end", nil
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("and %d more", len(names)-3))
	}
	return strings.Join(names, ", "), nil
}
