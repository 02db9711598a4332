package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Process is a sandbox that runs as a child.
type Process struct {
	// URL is where it answers, such as http://127.0.0.1:12346.
	URL string

	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when the child ended
	err   error         // why, once done is closed
}

// Start runs name with args, a program that calls Serve, and returns when it
// listens or ctx ends. report gets the lines of the child's standard error
// stream; those before it listens are in the error instead if it fails to start.
func Start(ctx context.Context, name string, args []string, report func(line string)) (*Process, error) {
	// Not CommandContext: the child outlives ctx, until Close.
	cmd := exec.Command(name, args...)
	errs := &reporter{report: report}
	cmd.Stderr = errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start the sandbox: %w", err)
	}
	// A pipe of our own, as Wait closes StdoutPipe under its reader.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start the sandbox: %w", err)
	}
	defer r.Close()
	cmd.Stdout = w
	err = cmd.Start()
	w.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot start the sandbox: %w", err)
	}
	p := &Process{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()

	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(r).ReadString('\n')
		line <- s
	}()
	select {
	case s := <-line:
		url, ok := strings.CutPrefix(s, announcement)
		if !ok {
			err := p.Close() // which waits for what it says
			return nil, errors.Join(fmt.Errorf("cannot start the sandbox: %s", cmp.Or(errs.text(), "it ended before it listened")), err)
		}
		p.URL = strings.TrimSpace(url)
		errs.started()
		return p, nil
	case <-ctx.Done():
		err := errors.Join(context.Cause(ctx), p.Close())
		<-line
		return nil, err
	}
}

// Done is closed when the child ended, whoever ended it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Close ends the child, by force if it takes long, and waits for it.
func (p *Process) Close() error {
	_ = p.stdin.Close()
	t := time.NewTimer(10 * time.Second)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	if p.err != nil {
		return fmt.Errorf("the sandbox ended with %w", p.err)
	}
	return nil
}

// reporter passes on whole lines once the child has started, and keeps those
// before.
type reporter struct {
	report func(line string)

	mu      sync.Mutex
	running bool
	kept    []string
	rest    string // a line that is not finished
}

// Write takes a part of the stream.
func (r *reporter) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := strings.Split(r.rest+string(p), "\n")
	r.rest = lines[len(lines)-1]
	r.kept = append(r.kept, lines[:len(lines)-1]...)
	r.flush()
	return len(p), nil
}

func (r *reporter) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = true
	r.flush()
}

// flush reports what was kept. mu is held.
func (r *reporter) flush() {
	if !r.running {
		return
	}
	for _, l := range r.kept {
		r.report(l)
	}
	r.kept = nil
}

// text returns what the child said, in one line.
func (r *reporter) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimPrefix(strings.Join(r.kept, "; "), "weir: ")
}
