// Command weir is a telemetry collector whose components are written in Go, Lua,
// JavaScript or TypeScript, or as a one-line expression.
//
// Each command has its own file. wire.go lists everything that is compiled in.
// This package deals with the process: flags, the environment, signals, exit codes
// and the terminal.
//
// Exit codes: 0 means success; 1 means that the config or the run has a mistake; 2
// means that the command line is wrong or that weir cannot start, for example
// because another process uses the storage path.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/natives/loki/logql"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "dev"

func main() {
	t := newTerminal(os.Stdout, os.Stderr)
	os.Exit(execute(context.Background(), t, os.Args[1:]))
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // mistakes in the config, a failed run
	exitUsage  = 2 // wrong command line, or weir cannot start
)

// exitError is an error with an exit code. If err is nil, the error was already
// printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// cannotStart wraps err so that weir exits with code 2.
func cannotStart(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitUsage, err: err}
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, t *terminal, args []string) int {
	root := rootCommand(t)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if cmd.Name() == "run" && !t.errTerminal && t.log == nil { // the error occurred before the log was created
		s, _ := newServices(port{}, cmd.Flag("log.format").Value.String(), t.err)
		if s == nil { // the format is invalid
			s, _ = newServices(port{}, "", t.err)
		}
		t.log = s.telemetry.Logger
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			t.errorf("%v", exit.err)
		}
		return exit.code
	}
	if l := t.logger(); l != nil {
		l.Error(err.Error(), "hint", "see '"+cmd.CommandPath()+" --help'")
		return exitUsage
	}
	t.errorf("%v", err)
	fmt.Fprintf(t.err, "See '%s --help'.\n", cmd.CommandPath())
	return exitUsage
}

// failed wraps the error of a command so that weir exits with code 1. Errors
// without a code are errors in the command line.
func failed(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var exit *exitError
		if err == nil || errors.As(err, &exit) {
			return err
		}
		return &exitError{code: exitFailed, err: err}
	}
}

func rootCommand(t *terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "A telemetry collector with components in Go, Lua, JavaScript, TypeScript and expr",
		Long: `weir collects telemetry, processes it in components and sends it on. A config
consists of blocks that refer to each other. The component of a block is built
into weir, or is a script in Lua, JavaScript or TypeScript next to the config.
When a script is saved, weir reloads it without losing a sample.`,
		Example: strings.Trim(`
  weir run --sandbox            try it: this host, through a script, into a throwaway Prometheus
  weir check config.alloy       find every mistake in a config
  weir run config.alloy         run a config
  weir fmt -w config.alloy      format a config
  weir new component ops/tidy   create a script and its test
  weir components               list what a config can use
  weir help config              read about the config language
`, "\n"),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // weir has its own completion command
	}
	root.SetOut(t.out)
	root.SetErr(t.err)
	root.AddCommand(
		runCommand(t),
		checkCommand(t),
		auditCommand(t),
		sbomCommand(t),
		fmtCommand(t),
		graphCommand(t),
		componentsCommand(t),
		docCommand(t),
		typesCommand(t),
		newCommand(t),
		pkgCommand(t),
		pluginsCommand(t),
		reloadCommand(t),
		promoteCommand(t),
		pageCommand(t),
		debugCommand(t),
		profileCommand(t),
		supportBundleCommand(t),
		tapCommand(t),
		topCommand(t),
		whyCommand(t),
		recordCommand(t),
		testCommand(t),
		evalCommand(t, os.Stdin),
		replCommand(t, os.Stdin),
		journalCommand(t),
		quarantineCommand(t),
		stateCommand(t),
		historyCommand(t), diffCommand(t), rollbackCommand(t), unpinCommand(t),
		completionCommand(t), manCommand(t),
		versionCommand(t.out),
		scriptsTopic(),
		configTopic(), exprTopic(),
		luaTopic(), jsTopic(),
		sandboxCommand(),
	)
	root.AddCommand(docsTopics()...)
	completeFlags(root)
	return root
}

func versionCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  weir version",
		Args:    cobra.NoArgs,
		RunE: failed(func(*cobra.Command, []string) error {
			_, err := io.WriteString(out, versionText())
			return err
		}),
	}
}

// versionText describes the binary.
func versionText() string {
	return fmt.Sprintf("weir %s (%s, %s/%s%s)\n%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, revision(), licence())
}

// licence returns the licence of the binary.
func licence() string {
	if logql.Linked {
		return "Apache-2.0, with Loki's LogQL, which is AGPL-3.0 (a build with -tags nologql does not contain it)"
	}
	return "Apache-2.0, without Loki's LogQL (built with -tags nologql)"
}

// revision returns the commit from which the binary was built, if Go recorded it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return ", commit " + s.Value[:12]
		}
	}
	return ""
}
