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

// Process is a sandbox that runs as a child process.
type Process struct {
	// URL is the address of the sandbox, such as http://127.0.0.1:12346.
	URL string

	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed when the child has ended
	err   error         // the reason; set before done is closed
}

// Start runs the program name with args, which must call Serve. It returns when
// the program listens or when ctx ends. report is called with the lines that the
// child writes to standard error. If the start fails, the earlier lines are part
// of the error instead.
func Start(ctx context.Context, name string, args []string, report func(line string)) (*Process, error) {
	// Not CommandContext, because the child outlives ctx until Close.
	cmd := exec.Command(name, args...)
	errs := &reporter{report: report}
	cmd.Stderr = errs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start the sandbox: %w", err)
	}
	// Create the pipe here, because Wait closes StdoutPipe while it is read.
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
			err := p.Close() // waits for the output of the child
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

// Done returns a channel that is closed when the child has ended for any reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Close ends the child and waits for it. It kills the child if that takes too
// long.
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

// reporter reports whole lines after the child has started and keeps the lines
// before.
type reporter struct {
	report func(line string)

	mu      sync.Mutex
	running bool
	kept    []string
	rest    string // an incomplete line
}

// Write implements io.Writer.
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

// flush reports the lines that were kept. The caller holds mu.
func (r *reporter) flush() {
	if !r.running {
		return
	}
	for _, l := range r.kept {
		r.report(l)
	}
	r.kept = nil
}

// text returns the output of the child in one line.
func (r *reporter) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimPrefix(strings.Join(r.kept, "; "), "weir: ")
}
