package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// formats are what --format may be.
var formats = []string{"pretty", "json", "junit", "tap"}

func testCommand(t *terminal) *cobra.Command {
	var dir, run, format string
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of scripts",
		Long: `Run the tests of scripts: the test files beside them (paths_test.lua belongs to
paths.lua), and the examples in the comments at their tops. PATH is a file or a
folder; without one it is the scripts folder.

What is tested is the component that a config would get, with the limits of its
block. Its clock stands still, and it has no network, files or environment. Each
test file has a VM of its own, and a test is ended after 2s of script time.

An example passes when the same series come out with the same values and times,
in any order. Of type, help and unit only what the output says is compared.

The exit code is 0 when all tests passed, 1 when one failed or a file is broken,
2 when there was nothing to run.

` + strings.TrimRight(scripttest.Manual(), "\n"),
		Example: `  weir test
  weir test scripts/http
  weir test --run='folds ids' scripts/http/paths_test.lua
  weir test --format=junit > report.xml`,
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formats, format) {
				return cannotStart(fmt.Errorf("cannot use --format=%s: it must be %s", format, strings.Join(formats, ", ")))
			}
			o := scripttest.Options{
				Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, Dir: dir, Paths: args,
			}
			if run != "" {
				re, err := regexp.Compile(run)
				if err != nil {
					return cannotStart(fmt.Errorf("cannot use --run=%s: %w", run, err))
				}
				o.Match = re
			}
			return runTests(cmd.Context(), t, o, format)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&dir, "scripts", "", "folder of scripts (default: the folder called scripts that PATH is in, or PATH)")
	f.StringVar(&run, "run", "", "run only tests whose full name matches this regular expression")
	f.StringVar(&format, "format", "pretty", "how to report: "+strings.Join(formats, ", "))
	return cmd
}

func runTests(ctx context.Context, t *terminal, o scripttest.Options, format string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	pretty := scripttest.Pretty{W: t.out, Clean: config.Printable, Paint: func(code, s string) string { return paint(t.outColor, code, s) }}
	if format == "pretty" {
		o.Each = pretty.File
	}
	r, err := scripttest.Run(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped before all tests were run")
		}
		return cannotStart(err)
	}
	switch format {
	case "json":
		err = scripttest.WriteJSON(t.out, r)
	case "junit":
		err = scripttest.WriteJUnit(t.out, r)
	case "tap":
		err = scripttest.WriteTAP(t.out, r)
	default:
		pretty.Summary(r)
	}
	if err == nil && !r.OK() {
		err = &exitError{code: exitFailed}
	}
	return err
}
