package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// formats are what --format may be.
var formats = []string{"pretty", "json", "junit", "tap"}

func testCommand(t *terminal) *cobra.Command {
	var (
		o       testOptions
		dir, re string
		fuzz    time.Duration
		chaos   uint64
	)
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of scripts",
		Long: `Run the tests of scripts: the test files beside them (paths_test.lua,
paths.test.ts and their like belong to paths.lua or paths.ts: a test may be in
another language than its script), and the examples in the comments at their
tops. PATH is a file or a folder; without one it is the scripts folder.

What is tested is the component that a config would get, with the limits of its
block. Its clock stands still, and of network, files, commands and environment it
has what the test says. Each test file has a VM of its own, and a test is ended
after 2s of script time. Files run side by side, --parallel at once, and are
reported in order.

An example passes when the same series come out with the same values and times,
in any order. Of type, help and unit only what the output says is compared.

With --watch it goes on and, when a file is saved, runs the tests that depend on
it, and those that failed last.

With --coverage it says which lines of the scripts, and of the modules they
require, ran: a line counts when every statement that begins in it did, and each
if has a branch for each condition and one for else. =text is a table, =lcov and
=html write lcov.info and coverage.html. With --update an example whose output is
another gets the one that came out.

With --chaos it runs the tests of each file five times more, and between calls of
a component a new generation takes over, with new VMs, as after a save: tests must
pass as before. If there are mocks of what is outside, they also fail now and
then, and scripts must not. The same number brings the same faults.

With --fuzz it sends hostile batches to each transform, opened as its tests and its
examples open it: what is in fixtures and what they send, with labels missing,
values odd, series many. The script must not fail, and two components must make
the same of a batch. A batch on which it fails is made small and printed as a
test.

With --bench it measures what test files declare with bench, when all tests have
passed: nanoseconds, allocations and instructions of the scripts (statements, in
JavaScript) for each record, in a batch whose series are known, and instructions
in the first batch. With --baseline FILE it fails when a benchmark runs more
instructions than the file says, which does not depend on the machine, and tells
how time has changed; with --update the file is written anew.

The exit code is 0 when all tests passed, 1 when one failed or a file is broken,
2 when there was nothing to run.

` + strings.TrimRight(scripttest.Manual(api.InJS), "\n"),
		Example: `  weir test
  weir test scripts/http
  weir test --run='folds ids' scripts/http/paths_test.lua
  weir test --format=junit > report.xml
  weir test --coverage --threshold=90
  weir test --update scripts/http/paths.lua`,
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			o.Options = scripttest.Options{
				Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, Dir: dir, Paths: args, Parallel: o.Parallel,
				Fuzz: fuzz, Seed: uint64(time.Now().UnixNano()),
			}
			if o.Chaos = cmd.Flags().Changed("chaos"); chaos != 0 {
				o.Seed = chaos
			} else if o.Seed %= 1_000_000; o.Chaos { // a number that one can type
				t.printStatus("chaos", fmt.Sprint(o.Seed))
			}
			if err := o.check(cmd, re); err != nil {
				return cannotStart(err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if o.watching {
				return o.watch(ctx, t)
			}
			return o.run(ctx, t)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&dir, "scripts", "", "folder of scripts (default: the folder called scripts that PATH is in, or PATH)")
	f.StringVar(&re, "run", "", "run only tests whose full name matches this regular expression")
	f.StringVar(&o.format, "format", "pretty", "how to report: "+strings.Join(formats, ", "))
	f.BoolVar(&o.watching, "watch", false, "run the tests again that a saved file concerns, until ctrl-C")
	f.IntVar(&o.Parallel, "parallel", 0, "how many files run at once (default: the number of CPUs)")
	f.BoolVar(&o.update, "update", false, "rewrite the outputs of examples that are others")
	f.StringVar(&o.coverage, "coverage", "", "say which lines of the scripts ran: "+strings.Join(coverages, ", "))
	f.Lookup("coverage").NoOptDefVal = coverages[0]
	f.BoolVar(&o.bench, "bench", false, "measure the benches of test files when all tests passed")
	f.StringVar(&o.baseline, "baseline", "", "compare benches with this file, and make it when there is none; implies --bench")
	f.Uint64Var(&chaos, "chaos", 0, "run tests again with faults that are drawn from this number; 0 draws one")
	f.DurationVar(&fuzz, "fuzz", 0, "so long, send hostile batches to the scripts when all tests passed")
	f.Float64Var(&o.threshold, "threshold", 0, "fail when less than this many percent of all lines ran")
	return cmd
}

// testOptions are what the command line says.
type testOptions struct {
	scripttest.Options
	format    string
	update    bool
	watching  bool
	coverage  string
	threshold float64
	bench     bool
	baseline  string
	known     bool // there is a baseline
}

// coverages are what --coverage may be.
var coverages = []string{"text", "lcov", "html"}

// coverageFiles is where a report goes that is not for people, by kind. Editors
// look for lcov.info.
var coverageFiles = map[string]string{"lcov": "lcov.info", "html": "coverage.html"}

// check completes the options.
func (o *testOptions) check(cmd *cobra.Command, re string) (err error) {
	if !slices.Contains(formats, o.format) {
		return fmt.Errorf("cannot use --format=%s: it must be %s", o.format, strings.Join(formats, ", "))
	}
	if o.Fuzz < 0 {
		return fmt.Errorf("cannot use --fuzz=%s: it must be longer than nothing", o.Fuzz)
	}
	if o.watching && o.format != "pretty" {
		return fmt.Errorf("cannot use --watch with --format=%s: it reports again and again", o.format)
	}
	if re != "" {
		if o.Match, err = regexp.Compile(re); err != nil {
			return fmt.Errorf("cannot use --run=%s: %w", re, err)
		}
	}
	if o.Parallel < 0 || o.Parallel == 0 && cmd.Flags().Changed("parallel") {
		return fmt.Errorf("cannot use --parallel=%d: it must be 1 or more", o.Parallel)
	}
	if o.coverage != "" && !slices.Contains(coverages, o.coverage) {
		return fmt.Errorf("cannot use --coverage=%s: it must be %s", o.coverage, strings.Join(coverages, ", "))
	}
	if !(o.threshold >= 0 && o.threshold <= 100) {
		return fmt.Errorf("cannot use --threshold=%v: it is a percentage", o.threshold)
	}
	if cmd.Flags().Changed("threshold") && o.coverage == "" {
		o.coverage = coverages[0]
	}
	o.Coverage = o.coverage != ""
	if o.Bench = o.bench || o.baseline != ""; o.Bench && o.Coverage {
		return errors.New("cannot use --bench with --coverage, which makes scripts slower; run them one after the other")
	}
	if o.update {
		o.Update = replaceFile
	}
	return nil
}

// run runs the tests once and reports.
func (o *testOptions) run(ctx context.Context, t *terminal) error {
	r, err := o.once(ctx, t, o.Options)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped before all tests were run")
		}
		return cannotStart(err)
	}
	ok := r.OK()
	if o.Bench && ok {
		good, err := o.reportBenchmarks(t, r)
		if err != nil {
			return err
		}
		ok = good
	}
	if r.Coverage != nil {
		enough, err := o.reportCoverage(t, r.Coverage)
		if err != nil {
			return err
		}
		ok = ok && enough
	}
	if !ok {
		return &exitError{code: exitFailed}
	}
	return nil
}

func (o *testOptions) pretty(t *terminal) scripttest.Pretty {
	return scripttest.Pretty{W: t.out, Clean: config.Printable, Paint: func(code, s string) string { return paint(t.outColor, code, s) }}
}

// once runs tests and writes their report.
func (o *testOptions) once(ctx context.Context, t *terminal, run scripttest.Options) (*scripttest.Report, error) {
	pretty := o.pretty(t)
	if o.format == "pretty" {
		run.Each = pretty.File
	}
	r, err := scripttest.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	if o.baseline != "" {
		if o.known, err = scripttest.ReadBaseline(o.baseline, r); err != nil {
			return nil, err
		}
	}
	switch o.format {
	case "json":
		err = scripttest.WriteJSON(t.out, r)
	case "junit":
		err = scripttest.WriteJUnit(t.out, r)
	case "tap":
		err = scripttest.WriteTAP(t.out, r)
	default:
		if len(r.Files) > 0 {
			pretty.Summary(r)
		}
	}
	return r, err
}

// people is where what is for people goes: to the standard error when the
// standard output is a report for programs.
func (o *testOptions) people(t *terminal) io.Writer {
	if o.format != "pretty" {
		return t.err
	}
	return t.out
}

// reportBenchmarks writes what was measured, and reports whether it is no worse
// than the baseline.
func (o *testOptions) reportBenchmarks(t *terminal, r *scripttest.Report) (good bool, err error) {
	pretty := o.pretty(t)
	pretty.W = o.people(t)
	pretty.Benchmarks(r)
	if o.baseline == "" || o.known && !o.update {
		return !r.Slower(), nil
	}
	write := replaceFile
	if !o.known {
		write = func(path, text string) error { return os.WriteFile(path, []byte(text), 0o666) } // subject to the umask
	}
	if err := write(o.baseline, scripttest.Baseline(r)); err != nil {
		return false, fmt.Errorf("cannot write the baseline: %w", err)
	}
	t.printStatus("written", o.baseline)
	return true, nil
}

// reportCoverage writes what ran, and reports whether it is enough.
func (o *testOptions) reportCoverage(t *terminal, c *scripttest.Coverage) (enough bool, err error) {
	people := o.people(t)
	lines, _ := c.Total()
	switch name := coverageFiles[o.coverage]; o.coverage {
	case "text":
		err = scripttest.WriteCoverage(people, c)
	default:
		write := scripttest.WriteLCOV
		if o.coverage == "html" {
			write = scripttest.WriteHTML
		}
		var b strings.Builder
		if err = write(&b, c); err == nil {
			err = os.WriteFile(name, []byte(b.String()), 0o666) // as any report, subject to the umask
		}
		if err == nil {
			_, err = fmt.Fprintf(people, "%.1f%% of lines ran; see %s\n", lines.Percent(), name)
		}
	}
	if err != nil {
		return false, fmt.Errorf("cannot report the coverage: %w", err)
	}
	if lines.Percent() < o.threshold {
		fmt.Fprintf(t.err, "weir: %.1f%% of lines ran, less than the %v%% of --threshold\n", lines.Percent(), o.threshold)
		return false, nil
	}
	return true, nil
}
