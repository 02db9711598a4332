package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// evalTime is the default time limit for a plain file. It is longer than that of
// a hook, because a user waits for the file instead of data.
const evalTime = 10 * time.Second

func evalCommand(t *terminal, stdin io.Reader) *cobra.Command {
	var o scripting.PlainOptions
	var dir, memory string
	cmd := &cobra.Command{
		Use:   "eval FILE [ARGS...]",
		Short: "Run a plain script file",
		Long: `Run a file in Lua, JavaScript or TypeScript that is not a component, with the
globals, modules and limits of components. If FILE is -, read Lua from the standard
input. print and console.log write to the standard output; the value that the file
returns or exports is not printed.

ARGS are available as ... and as the global arg, in JavaScript as the global args.
require and import find the standard library and the modules in the folder lib of
--scripts. Unlike a component, a file in Lua may assign to globals. It has no
grants: there is no network, no files, no environment, no clock and no ctx.

The exit code is 0 if the file succeeded and 1 if it failed. After a failure, the
standard error output contains the class of the error (syntax error, runtime error
or limit error) and the error. The exit code is 2 if the file cannot be read.

'weir help lua' and 'weir help js' explain how the languages differ from their
standards.`,
		Example: `  weir eval tool.lua a b
  weir eval tool.ts a b
  echo 'print(1 + 1)' | weir eval -`,
		Args: cobra.MinimumNArgs(1),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if o.Time < time.Millisecond {
				return cannotStart(fmt.Errorf("cannot use --time=%s: it must be 1ms or more", o.Time))
			}
			size, err := component.ParseSize(memory)
			if err == nil && size < 1<<20 {
				err = errors.New("it must be 1MiB or more")
			}
			if err != nil {
				return cannotStart(fmt.Errorf("cannot use --memory=%s: %w", memory, err))
			}
			text, err := readPlain(stdin, args[0])
			if err != nil {
				return cannotStart(err)
			}
			if dir == "" && args[0] != "-" {
				dir = filepath.Dir(args[0])
			}
			o.Args, o.Memory = args[1:], int64(size)
			return evalFile(cmd.Context(), t, registry.Options{
				Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, UserDir: dir,
			}, args[0], text, o)
		}),
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // arguments after FILE are arguments of the file
	f.DurationVar(&o.Time, "time", evalTime, "what the file may take")
	f.StringVar(&memory, "memory", "64MiB", "what the file may hold")
	f.StringVar(&dir, "scripts", "", "folder whose lib has the modules that FILE requires or imports (default: the folder of FILE)")
	return cmd
}

// readPlain reads a file, or stdin, up to one byte more than the limit.
func readPlain(stdin io.Reader, name string) (string, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, scripting.MaxFileSize+1))
	} else {
		text, err = files.ReadArgument(name, scripting.MaxFileSize)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the file: %w", err)
	}
	return string(text), nil
}

func evalFile(ctx context.Context, t *terminal, so registry.Options, name, text string, o scripting.PlainOptions) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	run, err := registry.NewPlain(so, name, text)
	if err != nil {
		if _, ok := errors.AsType[*scripting.Error](err); ok {
			err = fmt.Errorf("syntax error: %w", err)
		}
		return err
	}
	var unwritten error
	o.Print = func(line string) {
		if _, err := io.WriteString(t.out, line+"\n"); err != nil && unwritten == nil {
			unwritten = fmt.Errorf("cannot write the output: %w", err)
		}
	}
	switch err = run(ctx, o); {
	case err == nil:
		return unwritten
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped: %w", err)
	case errors.Is(err, scripting.ErrLimit):
		return fmt.Errorf("limit error: %w", err)
	}
	return fmt.Errorf("runtime error: %w", err)
}
