package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
)

// runOptions are the flags of weirbench run.
type runOptions struct {
	collectors []string
	templates  string
	rounds     int
	json       string
	keep       string
}

func runCommand() *cobra.Command {
	var o runOptions
	var change bench.Scenario // what flags say instead of the preset
	cmd := &cobra.Command{
		Use:   "run [SCENARIO]",
		Short: "Measure collectors at a scenario",
		Long:  runHelp(),
		Example: `  weirbench run
  weirbench run relabel --collectors=weir,vmagent --rounds=5
  weirbench run --collectors=weir,weir=/tmp/weir-before   two builds of one collector
  weirbench run --targets=10 --interval=2s --warmup=4s --measure=10s --rounds=1`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.collectors, "collectors", []string{"weir", "prometheus", "vmagent"}, "names, or name=program to use another program")
	f.StringVar(&o.templates, "templates", "", "folder of collectors, in place of the built-in ones")
	f.IntVar(&o.rounds, "rounds", 3, "how often each collector is measured, in turn")
	f.StringVar(&o.json, "json", "", "file to write all figures to")
	f.StringVar(&o.keep, "keep", "", "folder to keep configs and logs in")
	f.DurationVar(&change.Interval, "interval", 0, "scrape interval (default: the scenario's)")
	f.DurationVar(&change.Warmup, "warmup", 0, "time before measuring (default: the scenario's)")
	f.DurationVar(&change.Measure, "measure", 0, "time of measuring (default: the scenario's)")
	loadFlags(f, &change.Load)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s := bench.Scenarios()[0]
		var err error
		if len(args) == 1 {
			if s, err = bench.ScenarioNamed(args[0]); err != nil {
				return err
			}
		}
		changed := applyFlags(f.Changed, &s, change)
		if o.rounds < 1 {
			return fmt.Errorf("cannot measure %d rounds: at least 1", o.rounds)
		}
		if err := s.Validate(); err != nil {
			return err
		}
		if changed {
			s.Help = fmt.Sprintf("%d targets × %d series every %s", s.Load.Targets, s.Load.Series, s.Interval)
		}
		return ran(func(cmd *cobra.Command, _ []string) error { return run(cmd, o, s) })(cmd, args)
	}
	return cmd
}

func runHelp() string {
	var b strings.Builder
	b.WriteString(`Measure collectors at a scenario: CPU seconds (user and system) for a million
samples delivered, and peak memory of the process, as the system counts them.
Collectors run one after the other, round by round; a table of the medians is
printed. A peer that is not installed is skipped; 'make peers' fetches some.

Scenarios:
`)
	for _, s := range bench.Scenarios() {
		fmt.Fprintf(&b, "  %-12s %s\n", s.Name, s.Help)
	}
	return b.String()
}

// applyFlags puts what was given on the command line into s, and reports
// whether anything was.
func applyFlags(given func(string) bool, s *bench.Scenario, to bench.Scenario) (changed bool) {
	set := func(name string, f func()) {
		if given(name) {
			f()
			changed = true
		}
	}
	set("interval", func() { s.Interval = to.Interval })
	set("targets", func() { s.Load.Targets = to.Load.Targets })
	set("series", func() { s.Load.Series = to.Load.Series })
	set("format", func() { s.Load.Format = to.Load.Format })
	set("gzip", func() { s.Load.Gzip = to.Load.Gzip })
	set("churn", func() { s.Load.Churn = to.Load.Churn })
	for name, f := range map[string]func(){ // these do not change the work
		"sequences": func() { s.Load.Sequences = to.Load.Sequences },
		"warmup":    func() { s.Warmup = to.Warmup },
		"measure":   func() { s.Measure = to.Measure },
	} {
		if given(name) {
			f()
		}
	}
	return changed
}

func run(cmd *cobra.Command, o runOptions, s bench.Scenario) (err error) {
	ctx, out, log := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	r := &bench.Report{
		Scenario: s.Name, Help: s.Help, Began: time.Now(), Machine: bench.ThisMachine(),
		Command: strings.Join(append([]string{"weirbench"}, os.Args[1:]...), " "),
	}
	cs, err := findCollectors(ctx, o, s, r, log)
	if err != nil {
		return err
	}
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "weirbench"); err != nil {
			return fmt.Errorf("cannot make a directory: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	measureErr := measure(ctx, cs, s, o.rounds, dir, r, log)
	if len(r.Rounds) == 0 {
		return measureErr
	}
	err = errors.Join(measureErr, r.Markdown(out), writeJSON(o.json, r))
	if err == nil && !r.Complete() {
		return errors.New("not everything was delivered; see above")
	}
	return err
}

// findCollectors returns those that can be measured, and notes the others in r.
func findCollectors(ctx context.Context, o runOptions, s bench.Scenario, r *bench.Report, log io.Writer) ([]*bench.Collector, error) {
	var templates fs.FS = bench.Templates()
	if o.templates != "" {
		templates = os.DirFS(o.templates)
	}
	var cs []*bench.Collector
	skip := func(why string) {
		r.Skipped = append(r.Skipped, why)
		fmt.Fprintf(log, "skipped: %s\n", why)
	}
	for _, wanted := range o.collectors {
		c, err := bench.FindCollector(ctx, templates, wanted)
		if missing, ok := errors.AsType[*bench.NotInstalledError](err); ok {
			skip(missing.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		if !c.Does(s.Name) {
			skip(fmt.Sprintf("%s cannot do %s", c.Title, s.Name))
			continue
		}
		cs = append(cs, c)
	}
	if len(cs) == 0 {
		return nil, fmt.Errorf("cannot measure anything: none of %s is there for %s; `make build peers` makes and fetches them", strings.Join(o.collectors, ", "), s.Name)
	}
	return cs, nil
}

func measure(ctx context.Context, cs []*bench.Collector, s bench.Scenario, rounds int, dir string, r *bench.Report, log io.Writer) error {
	for n := 1; n <= rounds; n++ {
		for i, c := range cs {
			fmt.Fprintf(log, "round %d of %d: %s %s for %s\n", n, rounds, c.Title, c.Version, s.Warmup+s.Measure)
			out, err := bench.Measure(ctx, c, s, n, filepath.Join(dir, fmt.Sprintf("%d-%d-%s", n, i, c.Name)))
			if err != nil {
				return fmt.Errorf("cannot measure %s: %w", c.Title, err)
			}
			fmt.Fprintf(log, "  %.2f CPU s per million samples, %.0f MB, %d of %d samples\n", out.PerMillion(), float64(out.PeakRSS)/1e6, out.Delivered, out.Expected)
			r.Rounds = append(r.Rounds, out)
		}
	}
	return nil
}

func writeJSON(path string, r *bench.Report) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write figures: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o666); err != nil {
		return fmt.Errorf("cannot write figures: %w", err)
	}
	return nil
}
