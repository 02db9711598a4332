package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/graph"
)

// runOptions are the flags of weirbench run.
type runOptions struct {
	collectors []string // empty means the usual ones of the scenario
	templates  string
	rounds     int // 0 means the number of the scenario
	json       string
	svg        string
	keep       string
}

func runCommand() *cobra.Command {
	var o runOptions
	var change bench.Scenario // settings from flags that override the preset
	cmd := &cobra.Command{
		Use:   "run [SCENARIO...]",
		Short: "Measure collectors at scenarios",
		Long:  runHelp(),
		Example: `  weirbench run
  weirbench run all --measure=30s
  weirbench run relabel --collectors=weir,vmagent --rounds=5
  weirbench run --collectors=weir,weir=/tmp/weir-before   two builds of one collector
  weirbench run churn --measure=30m --rounds=1 --svg=churn.svg
  weirbench run --targets=10 --interval=2s --warmup=4s --measure=10s --rounds=1`,
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.collectors, "collectors", nil, "names, or name=program to use another program (default: the scenario's)")
	f.StringVar(&o.templates, "templates", "", "folder of collectors, in place of the built-in ones")
	f.IntVar(&o.rounds, "rounds", 0, "how often each collector is measured, in turn (default: the scenario's)")
	f.StringVar(&o.json, "json", "", "file to write all figures to")
	f.StringVar(&o.svg, "svg", "", "file to draw memory over time in, of the last round of each collector")
	f.StringVar(&o.keep, "keep", "", "folder to keep configs and logs in")
	f.DurationVar(&change.Interval, "interval", 0, "scrape interval (default: the scenario's)")
	f.DurationVar(&change.Warmup, "warmup", 0, "time before measuring (default: the scenario's)")
	f.DurationVar(&change.Measure, "measure", 0, "time of measuring, at least an interval (default: the scenario's)")
	loadFlags(f, &change.Load)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.Changed("rounds") && o.rounds < 1 {
			return fmt.Errorf("cannot measure %d rounds: at least 1", o.rounds)
		}
		ss, err := scenarios(args, len(args) == 1 && args[0] == "all")
		if err != nil {
			return err
		}
		for i := range ss {
			s := &ss[i]
			if len(ss) > 1 && f.Changed("measure") { // the same time for all scenarios
				change.Measure = max(s.Interval, (change.Measure+s.Interval-1)/s.Interval*s.Interval)
			}
			if applyFlags(f.Changed, s, change) {
				s.Help = fmt.Sprintf("%d targets × %d series every %s", s.Load.Targets, s.Load.Series, s.Interval)
			}
			if o.rounds > 0 {
				s.Rounds = o.rounds
			}
			if len(o.collectors) > 0 {
				s.Usual = o.collectors
			}
			if err := s.Validate(); err != nil {
				return err
			}
		}
		return ran(func(cmd *cobra.Command, _ []string) error { return run(cmd, o, ss) })(cmd, args)
	}
	return cmd
}

// scenarios returns the presets with these names, or all presets, or the first
// one if there are no names.
func scenarios(names []string, all bool) ([]bench.Scenario, error) {
	if all {
		return bench.Scenarios(), nil
	}
	if len(names) == 0 {
		return bench.Scenarios()[:1], nil
	}
	if slices.Contains(names, "all") {
		return nil, errors.New("cannot run all together with named scenarios: all means every scenario")
	}
	var out []bench.Scenario
	for _, name := range names {
		s, err := bench.ScenarioNamed(name)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func runHelp() string {
	var b strings.Builder
	b.WriteString(`Measure collectors at scenarios: CPU seconds (user and system) for a million
samples delivered, and peak memory of the process, as the system counts them.
Collectors run one after the other, round by round; a table of the medians is
printed. A peer that is not installed is skipped; 'make peers' fetches some.

Scenarios (all is all of them, the first one is what is run without a name):
`)
	for _, s := range bench.Scenarios() {
		fmt.Fprintf(&b, "  %-12s %s\n", s.Name, s.Help)
	}
	return b.String()
}

// applyFlags applies the flags given on the command line to s, and reports
// whether there were any.
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

func run(cmd *cobra.Command, o runOptions, ss []bench.Scenario) error {
	ctx, log := cmd.Context(), cmd.ErrOrStderr()
	reports := make([]*bench.Report, len(ss))
	bouts := make([]bout, len(ss))
	for i, s := range ss {
		r := &bench.Report{Scenario: s.Name, Help: s.Help, Began: time.Now(), Machine: bench.ThisMachine(), Command: commandLine()}
		reports[i] = r
		bouts[i] = bout{name: s.Name, usual: s.Usual, rounds: s.Rounds, lasts: fmt.Sprintf(" for %s", s.Warmup+s.Measure), skipped: &r.Skipped}
		bouts[i].measure = func(c *bench.Collector, n int, dir string) error {
			one := bench.Measure
			if s.Ceiling {
				one = func(ctx context.Context, c *bench.Collector, s bench.Scenario, n int, dir string) (*bench.Round, error) {
					return bench.Ceiling(ctx, c, s, n, dir, log)
				}
			}
			out, err := one(ctx, c, s, n, dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(log, "  %.2f CPU s per million samples, %.0f MB", out.PerMillion(), float64(out.PeakRSS)/1e6)
			if !s.Ceiling {
				fmt.Fprintf(log, ", %d of %d samples", out.Delivered, out.Expected)
			}
			fmt.Fprintln(log)
			r.Rounds = append(r.Rounds, out)
			return nil
		}
	}
	err := measure(ctx, o, bench.Templates(), bouts, log)
	reports = slices.DeleteFunc(reports, func(r *bench.Report) bool { return len(r.Rounds) == 0 })
	if len(reports) == 0 {
		return err
	}
	err = errors.Join(err, bench.Markdown(cmd.OutOrStdout(), reports...), writeJSON(o.json, reports), drawMemory(o.svg, reports))
	return delivered(err, reports)
}

// commandLine returns the command line with which weirbench was called.
func commandLine() string { return strings.Join(append([]string{"weirbench"}, os.Args[1:]...), " ") }

// delivered returns err. If it is nil, delivered returns an error unless all
// reports are complete.
func delivered[R interface{ Complete() bool }](err error, reports []R) error {
	if err == nil && slices.ContainsFunc(reports, func(r R) bool { return !r.Complete() }) {
		return errors.New("not everything was delivered; see above")
	}
	return err
}

// bout is a scenario at which several collectors are measured.
type bout struct {
	name   string
	usual  []string // names of the usual collectors
	rounds int
	lasts  string // duration of a round, as text after the name of the collector; "" if unknown
	// measure measures one collector once, prints the result and stores it.
	measure func(c *bench.Collector, n int, dir string) error
	skipped *[]string // collectors that are not measured, with the reasons

	collectors []*bench.Collector
}

// findCollectors returns the wanted collectors that can be measured at a
// scenario, and the reasons why the other ones cannot.
func findCollectors(ctx context.Context, templates fs.FS, scenario string, wanted []string, log io.Writer) (cs []*bench.Collector, skipped []string, err error) {
	skip := func(why string) {
		skipped = append(skipped, why)
		fmt.Fprintf(log, "skipped: %s\n", why)
	}
	for _, name := range wanted {
		c, err := bench.FindCollector(ctx, templates, name)
		if missing, ok := errors.AsType[*bench.NotInstalledError](err); ok {
			skip(missing.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if !c.Does(scenario) {
			skip(fmt.Sprintf("%s cannot do %s", c.Title, scenario))
			continue
		}
		cs = append(cs, c)
	}
	if len(cs) == 0 {
		return nil, nil, fmt.Errorf("cannot measure anything: none of %s is there for %s; `make build peers` makes and fetches them", strings.Join(wanted, ", "), scenario)
	}
	return cs, skipped, nil
}

// measure measures round by round, each with all scenarios, so that other load on
// the machine affects all collectors alike. Collectors are found among the
// templates.
func measure(ctx context.Context, o runOptions, templates fs.FS, bouts []bout, log io.Writer) (err error) {
	if o.templates != "" {
		templates = os.DirFS(o.templates)
	}
	most := 0
	for i := range bouts {
		b := &bouts[i]
		if b.collectors, *b.skipped, err = findCollectors(ctx, templates, b.name, b.usual, log); err != nil {
			return err
		}
		most = max(most, b.rounds)
	}
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "weirbench"); err != nil {
			return fmt.Errorf("cannot make a directory: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	for n := 1; n <= most; n++ {
		for _, b := range bouts {
			for i, c := range b.collectors {
				if n > b.rounds {
					continue
				}
				fmt.Fprintf(log, "%s, round %d of %d: %s %s%s\n", b.name, n, b.rounds, c.Title, c.Version, b.lasts)
				if err := b.measure(c, n, filepath.Join(dir, fmt.Sprintf("%s-%d-%d-%s", b.name, n, i, c.Name))); err != nil {
					return fmt.Errorf("cannot measure %s at %s: %w", c.Title, b.name, err)
				}
			}
		}
	}
	return nil
}

func writeJSON(path string, reports any) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(reports, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write figures: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o666); err != nil {
		return fmt.Errorf("cannot write figures: %w", err)
	}
	return nil
}

// drawMemory draws the memory of the last round of each collector.
func drawMemory(path string, reports []*bench.Report) error {
	if path == "" {
		return nil
	}
	last := map[string]graph.Line{}
	var names []string
	for _, r := range reports {
		for _, o := range r.Rounds {
			l := o.Memory()
			if len(reports) > 1 {
				l.Name = r.Scenario + " " + l.Name
			}
			if _, again := last[l.Name]; !again {
				names = append(names, l.Name)
			}
			last[l.Name] = l
		}
	}
	var lines []graph.Line
	for _, name := range names {
		lines = append(lines, last[name])
	}
	var b bytes.Buffer
	if err := graph.SVG(&b, "resident memory: "+reports[0].Help, "MB", lines...); err != nil {
		return fmt.Errorf("cannot draw memory: %w", err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("cannot draw memory: %w", err)
	}
	return nil
}
