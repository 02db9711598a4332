package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// formats are the values of --format.
var formats = []string{"pretty", "json", "junit", "tap"}

func testCommand(t *terminal) *cobra.Command {
	var (
		o       testOptions
		dir, re string
		fuzz    time.Duration
		chaos   uint64
		seed    uint64
	)
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the tests of scripts",
		Long: `Run the tests of scripts: the test files next to them and the examples in their
header comments. paths_test.lua, paths.test.ts and similar files belong to
paths.lua or paths.ts; a test may be written in a different language than its
script. PATH is a file or a folder; the default is the scripts folder.

A test uses the same component as a config, with the limits of its block. The
clock is fixed, and the test provides network, files, commands and environment.
Each test file has its own VM, and a test is stopped after 2s of script time.
--parallel sets how many files run concurrently; results are reported in order.

An example passes if the output has the same series with the same values and
times, in any order. Type, help and unit are compared only if the expected output
contains them.

forall(gen.labels(), fn) calls fn with random values of a generator. A value for which
fn fails is made as small as possible and printed as code, with the number for --seed
that repeats the run.

With --watch, it keeps running. When a file is saved, it runs the tests that
depend on the file and the tests that failed last.

With --coverage, it reports which lines of the scripts and of their modules ran. A
line counts if every statement that begins in it ran. Each if has one branch per
condition and one for else. =text prints a table; =lcov and =html write lcov.info
and coverage.html. With --update, examples with different output are updated.

assert.snapshot(out) and expect(out).toMatchSnapshot() compare a value with the
snapshot in __snapshots__/NAME.snap next to the test file. A missing snapshot is
written; with --ci, its test fails. Snapshots that no test checks are reported.
With --update, different snapshots are updated and obsolete ones are removed.

With --chaos, it runs the tests of each file five more times. Between calls of a
component, a new version with new VMs takes over, as after a save; the tests must
still pass. Mocks of external resources also fail at random, and scripts must
handle that; send and poll may pass the error on, because weir calls them again. The
same number produces the same faults.

With --fuzz, it sends hostile batches to each transform, with the arguments that
its tests and examples use. The batches are variations of the fixtures and of the
data in the tests, with missing labels, unusual values and many series. The script
must not fail, and two components must produce the same output for a batch. A batch
on which the script fails is reduced and printed as a test.

With --mutate, it changes the code of scripts and of their modules in small ways, one
at a time and only in memory, and runs the tests that cover the line: conditions are
negated, operators and constants replaced, statements dropped. It reports each change
that no test notices, with file, line and column. By default it takes up to a minute;
if the time is short, it tests mutants that are spread evenly. --mutate-threshold fails
the run below a percentage of noticed changes. A comment -- weir:ignore mutate REASON in
the line, or in the line above, exempts code whose changes no test can notice.

With --bench, it runs the benchmarks that test files declare with bench after all
tests have passed. It measures nanoseconds, allocations and instructions of the
script (in JavaScript, statements) per record in a batch with known series, and
instructions in the first batch. With --baseline FILE, it fails if a benchmark runs
more instructions than the file allows, which does not depend on the machine, and
reports how the time has changed. With --update, it writes the file again.

The exit code is 0 if all tests passed, 1 if a test failed or a file is broken,
and 2 if there was nothing to run.

` + strings.TrimRight(scripttest.Manual(api.InJS), "\n"),
		Example: `  weir test
  weir test scripts/http
  weir test --run='folds ids' scripts/http/paths_test.lua
  weir test --format=junit > report.xml
  weir test --coverage --threshold=90
  weir test --mutate=30s scripts/http
  weir test --update scripts/http/paths.lua`,
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			o.Options = scripttest.Options{
				Languages: languages(), Modules: stdlib.Modules(), Pipelines: pipelines(), Embedded: scripts.FS, Dir: dir, Paths: args, Parallel: o.Parallel,
				Mutate: o.Mutate, Fuzz: fuzz, Seed: uint64(time.Now().UnixNano()),
			}
			o.Seed %= 1_000_000 // short enough to type
			if cmd.Flags().Changed("seed") {
				o.Seed = seed
			}
			if o.Chaos = cmd.Flags().Changed("chaos"); chaos != 0 {
				o.Seed = chaos
			} else if o.Chaos {
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
	f.BoolVar(&o.update, "update", false, "rewrite outputs of examples, and snapshots, that differ")
	f.BoolVar(&o.ci, "ci", false, "fail on missing snapshots instead of writing them (default: true if the environment variable CI is set)")
	f.StringVar(&o.coverage, "coverage", "", "say which lines of the scripts ran: "+strings.Join(coverages, ", "))
	f.Lookup("coverage").NoOptDefVal = coverages[0]
	f.BoolVar(&o.bench, "bench", false, "measure the benches of test files when all tests passed")
	f.StringVar(&o.baseline, "baseline", "", "compare benches with this file, and make it when there is none; implies --bench")
	f.Uint64Var(&chaos, "chaos", 0, "run tests again with faults that are drawn from this number; 0 draws one")
	f.Uint64Var(&seed, "seed", 0, "number from which forall, --chaos and --fuzz draw (default: another one in each run)")
	f.DurationVar(&fuzz, "fuzz", 0, "so long, send hostile batches to the scripts when all tests passed")
	f.DurationVar(&o.Mutate, "mutate", 0, "so long, change the code of scripts and report changes that no test notices")
	f.Lookup("mutate").NoOptDefVal = defaultMutate.String()
	f.Float64Var(&o.mutateThreshold, "mutate-threshold", 0, "fail when tests notice less than this many percent of the changes; implies --mutate")
	f.Float64Var(&o.threshold, "threshold", 0, "fail when less than this many percent of all lines ran")
	return cmd
}

// testOptions are the flags of the command.
type testOptions struct {
	scripttest.Options
	format    string
	update    bool
	ci        bool
	watching  bool
	coverage  string
	threshold float64
	// mutateThreshold is the score that mutation tests must reach, in percent.
	mutateThreshold float64

	bench    bool
	baseline string
	known    bool // the baseline exists
}

// defaultMutate is how long mutation tests take by default.
const defaultMutate = time.Minute

// coverages are the values of --coverage.
var coverages = []string{"text", "lcov", "html"}

// coverageFiles are the default files of the coverage reports for programs, by
// kind. Editors look for lcov.info.
var coverageFiles = map[string]string{"lcov": "lcov.info", "html": "coverage.html"}

// check validates the options and sets defaults.
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
	if !(o.mutateThreshold >= 0 && o.mutateThreshold <= 100) {
		return fmt.Errorf("cannot use --mutate-threshold=%v: it is a percentage", o.mutateThreshold)
	}
	if o.Mutate < 0 || o.Mutate == 0 && cmd.Flags().Changed("mutate") {
		return fmt.Errorf("cannot use --mutate=%s: it must be greater than 0s", o.Mutate)
	}
	if cmd.Flags().Changed("mutate-threshold") && o.Mutate == 0 {
		o.Mutate = defaultMutate
	}
	if o.Mutate > 0 && o.watching {
		return errors.New("cannot use --mutate with --watch: run it when the tests are done")
	}
	o.Coverage = o.coverage != ""
	if o.Bench = o.bench || o.baseline != ""; o.Bench && o.Coverage {
		return errors.New("cannot use --bench with --coverage, which makes scripts slower; run them one after the other")
	}
	if !cmd.Flags().Changed("ci") {
		ci := os.Getenv("CI")
		o.ci = ci != "" && ci != "false" && ci != "0"
	}
	switch {
	case o.update:
		o.Update, o.Write = files.Rewrite, writeSnapshots
	case !o.ci:
		o.Write = writeSnapshots
	}
	return nil
}

// writeSnapshots writes a file of snapshots, or removes it if content is empty.
func writeSnapshots(path, content string) error {
	if content == "" {
		return os.Remove(path)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(path, []byte(content), 0o666) // subject to the umask
	}
	return files.Rewrite(path, content)
}

// run runs the tests once and prints a report.
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
	if r.Mutants != nil {
		pretty := o.pretty(t)
		pretty.W = o.people(t)
		pretty.Mutants(r.Mutants)
		if r.Mutants.Score() < o.mutateThreshold {
			fmt.Fprintf(t.err, "weir: %.1f%% of the mutants were killed, less than the %v%% of --mutate-threshold\n", r.Mutants.Score(), o.mutateThreshold)
			ok = false
		}
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

// once runs the tests and writes their report.
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

// people returns the writer for messages: standard error if standard output is a
// report for programs.
func (o *testOptions) people(t *terminal) io.Writer {
	if o.format != "pretty" {
		return t.err
	}
	return t.out
}

// reportBenchmarks prints the benchmark results and reports whether they are no
// worse than the baseline.
func (o *testOptions) reportBenchmarks(t *terminal, r *scripttest.Report) (good bool, err error) {
	pretty := o.pretty(t)
	pretty.W = o.people(t)
	pretty.Benchmarks(r)
	if o.baseline == "" || o.known && !o.update {
		return !r.Slower(), nil
	}
	write := files.Rewrite
	if !o.known {
		write = func(path, text string) error { return os.WriteFile(path, []byte(text), 0o666) } // subject to the umask
	}
	if err := write(o.baseline, scripttest.Baseline(r)); err != nil {
		return false, fmt.Errorf("cannot write the baseline: %w", err)
	}
	t.printStatus("written", o.baseline)
	return true, nil
}

// reportCoverage writes the coverage report and reports whether the coverage is
// high enough.
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
			err = os.WriteFile(name, []byte(b.String()), 0o666) // subject to the umask, like every report
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
