package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
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
// listens or ctx ends. What the child logs goes to stderr.
func Start(ctx context.Context, name string, args []string, stderr io.Writer) (*Process, error) {
	// Not CommandContext: the child outlives ctx, until Close.
	cmd := exec.Command(name, args...)
	cmd.Stderr = stderr
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
			return nil, errors.Join(errors.New("cannot start the sandbox: it ended before it listened"), p.Close())
		}
		p.URL = strings.TrimSpace(url)
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
