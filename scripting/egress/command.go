package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// Command is a program to run.
type Command struct {
	Path  string // absolute
	Args  []string
	Stdin string
	// SearchPath is its PATH, the only variable that is taken from weir's
	// environment.
	SearchPath string
	// MaxOutput bounds what it writes to stdout and to stderr, each, in bytes.
	MaxOutput int64
}

// CommandResult is what a program did.
type CommandResult struct {
	Code           int // what it ended with
	Stdout, Stderr string
}

// ungrasp is how long is waited for what a killed program's children hold open.
const ungrasp = time.Second

// Run runs a program, with no shell and nothing of weir's environment but PATH,
// in the root directory, and waits for it. When ctx ends or it writes too much,
// it is killed with all that it started; what it leaves running when it ends is
// killed, too. A code other than 0 is no error.
func Run(ctx context.Context, c Command) (CommandResult, error) {
	fail := func(err error) (CommandResult, error) {
		return CommandResult{}, fmt.Errorf("cannot run %s: %w", c.Path, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Env = environment(c.SearchPath)
	cmd.Dir = filepath.VolumeName(c.Path) + string(filepath.Separator)
	cmd.WaitDelay = ungrasp
	if c.Stdin != "" {
		cmd.Stdin = bytes.NewReader([]byte(c.Stdin))
	}
	over := func() { cancel(fmt.Errorf("%w: it wrote more than %d bytes", ErrTooLarge, c.MaxOutput)) }
	out, errOut := &output{left: c.MaxOutput, over: over}, &output{left: c.MaxOutput, over: over}
	cmd.Stdout, cmd.Stderr = out, errOut
	g := newGroup(cmd)
	if err := cmd.Start(); err != nil {
		return fail(startError(err))
	}
	err := cmd.Wait()
	g.kill()
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended, and left something behind that held its output open
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok && exit.ExitCode() < 0:
		return fail(fmt.Errorf("it was ended by %s", exit.ProcessState))
	case err != nil && !ok:
		return fail(err)
	}
	return CommandResult{Code: cmd.ProcessState.ExitCode(), Stdout: out.buf.String(), Stderr: errOut.buf.String()}, nil
}

// startError is why a program could not be started, without its path.
func startError(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return plain(err)
}

// output takes what a program writes.
type output struct {
	buf  bytes.Buffer
	left int64
	over func()
}

// Write takes p, unless it is too much.
func (o *output) Write(p []byte) (int, error) {
	if o.left -= int64(len(p)); o.left < 0 {
		o.over()
		return 0, ErrTooLarge
	}
	return o.buf.Write(p)
}
