// Command weirbench measures collectors: it simulates the targets and the
// endpoint, runs weir and every installed peer with the same work, and reads from
// the operating system what they used.
//
// Each command has its own file. All connections are on loopback, on ports that
// the system chooses. Exit codes: 0 means success; 1 means that something failed
// or a collector did not deliver everything; 2 means that the command line is
// wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// runError is an error of a command whose command line was valid.
type runError struct{ error }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use:   "weirbench",
		Short: "Measure collectors",
		Example: `  weirbench run                              weir and its peers at the usual work, three rounds
  weirbench run relabel --collectors=weir    one of them at another
  weirbench logs passthrough native          lines of logs
  weirbench targets --targets=10             only the targets
  weirbench sink --listen-addr=127.0.0.1:9090 only the endpoint`,
		Version:           runtime.Version(), // the Go version, which affects the floor
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetArgs(args)
	root.AddCommand(runCommand(), bareCommand(), outageCommand(), soakCommand(), reloadCommand(), observeCommand(), faultsCommand(), pumpCommand(), stagesCommand(), targetsCommand(), sinkCommand(),
		logsCommand(), filesCommand(), floorCommand())
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(errOut, "error: %v\n", err)
	if _, ok := errors.AsType[runError](err); ok {
		return 1
	}
	fmt.Fprintf(errOut, "See '%s --help'.\n", cmd.CommandPath())
	return 2
}

// ran wraps the error of a command in a runError. All other errors are errors in
// the command line.
func ran(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return runError{err}
		}
		return nil
	}
}

// findWeir returns the absolute path of the program of weir.
func findWeir(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("cannot find weir: %w; run `make build` to build it", err)
	}
	return filepath.Abs(path)
}

// hello reports the address of a server: as text for a person, or as one line of
// JSON for a runner. In the latter case, the returned context ends when the
// runner ends.
func hello(cmd *cobra.Command, h bench.Hello, untilEOF bool, text string) (context.Context, error) {
	ctx := cmd.Context()
	if !untilEOF {
		_, err := fmt.Fprint(cmd.OutOrStdout(), text)
		return ctx, err
	}
	// A signal that ends the runner reaches the whole process group, as Ctrl-C
	// does. The runner still sends requests, so this process must continue.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	in := cmd.InOrStdin()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, json.NewEncoder(cmd.OutOrStdout()).Encode(h)
}
