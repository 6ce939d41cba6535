package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a process may take to end.
const patience = 20 * time.Second

// Health says after how many seconds of silence a connection is pinged, and how
// long the answer may take. Both are shorter than client-go's defaults, 30 and 15,
// in favour of those who rely on them.
const (
	Health        = "10"
	HealthTimeout = "5"
)

// Process is a cache that runs. Make one with [Start].
type Process struct {
	// Kind is the cache that it runs.
	Kind Kind

	command *exec.Cmd
	in      io.WriteCloser
	errors  *head
	ended   chan struct{}

	mu      sync.Mutex
	samples []Sample
	actions []Sample
	left    *Left
	err     error // how the process ended
}

// Start starts a process. The caller must call [Process.Stop]; the process does
// not outlive ctx.
func Start(ctx context.Context, setup Setup) (*Process, error) {
	data, err := json.Marshal(setup)
	if err != nil {
		return nil, err
	}
	p := &Process{Kind: setup.Kind, errors: &head{}, ended: make(chan struct{})}
	p.command = exec.CommandContext(ctx, os.Args[0])
	p.command.Env = append(os.Environ(), asked+"="+string(data),
		"HTTP2_READ_IDLE_TIMEOUT_SECONDS="+Health, "HTTP2_PING_TIMEOUT_SECONDS="+HealthTimeout)
	p.command.Stderr = p.errors
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go p.listen(out)
	return p, nil
}

func (p *Process) listen(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			continue // what a library prints
		}
		p.mu.Lock()
		if l.Sample != nil {
			p.samples = append(p.samples, *l.Sample)
		}
		if l.Action != nil {
			p.actions = append(p.actions, *l.Action)
		}
		if l.Left != nil {
			p.left = l.Left
		}
		p.mu.Unlock()
	}
	err := p.command.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err = fmt.Errorf("%w: %s", err, p.errors)
	}
}

// Samples returns what was read so far.
func (p *Process) Samples() []Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.samples[:len(p.samples):len(p.samples)]
}

// Actions returns what a controller over the cache acted on so far: there is one
// over SafeStore, under its tokens.
func (p *Process) Actions() []Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.actions[:len(p.actions):len(p.actions)]
}

// Last returns the newest sample, and false if there is none.
func (p *Process) Last() (Sample, bool) {
	all := p.Samples()
	if len(all) == 0 {
		return Sample{}, false
	}
	return all[len(all)-1], true
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Consume says how the consumers of the cache behave from now on: [Well],
// [Blocked] or [Panicking]. Something happens that they are told of.
func (p *Process) Consume(how string) error {
	if !p.Alive() {
		return nil
	}
	_, err := fmt.Fprintln(p.in, how)
	return err
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.command.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop stops the cache, ends the process and returns what it leaves behind: an
// error if the process ended by itself before, or has to be killed.
func (p *Process) Stop() (Left, error) {
	_ = p.Signal(syscall.SIGCONT)
	if p.Alive() {
		_, _ = fmt.Fprintln(p.in, stop)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
		<-p.ended
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		return Left{}, errors.Join(errors.New("the process has ended by itself, or had to be killed"), p.err)
	}
	return *p.left, nil
}

// head keeps the beginning of what a process says on its standard error: there a
// panic says what it is.
type head struct {
	mu sync.Mutex
	b  strings.Builder
}

const headLength = 2000

func (t *head) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := headLength - t.b.Len(); room > 0 {
		t.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *head) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
