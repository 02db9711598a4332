package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
)

func logsCommand() *cobra.Command {
	var o runOptions
	var lines, files, rate int
	var forTime time.Duration
	cmd := &cobra.Command{
		Use:   "logs [SCENARIO...]",
		Short: "Measure collectors of logs at scenarios",
		Long:  logsHelp(),
		Example: `  weirbench logs
  weirbench logs all --rounds=1
  weirbench logs native lua js logql
  weirbench logs passthrough --collectors=weir,weir=/tmp/weir-before   two builds of one collector
  weirbench logs files --measure=10s --rounds=1`,
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.collectors, "collectors", nil, "names, or name=program to use another program (default: the scenario's)")
	f.StringVar(&o.templates, "templates", "", "folder of collectors, in place of the built-in ones")
	f.IntVar(&o.rounds, "rounds", 0, "how often each collector is measured, in turn (default: the scenario's)")
	f.StringVar(&o.json, "json", "", "file to write all figures to")
	f.StringVar(&o.keep, "keep", "", "folder to keep configs and logs in")
	f.IntVar(&lines, "lines", 0, "lines to write as fast as it goes (default: the scenario's)")
	f.IntVar(&files, "files", 0, "files to write them to (default: the scenario's)")
	f.IntVar(&rate, "rate", 0, "lines a second, where the scenario has a rate (default: the scenario's)")
	f.DurationVar(&forTime, "measure", 0, "how long that goes on (default: the scenario's)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ss, err := logScenarios(args)
		if err != nil {
			return err
		}
		for i := range ss {
			s := &ss[i]
			given := func(name string, f func()) {
				if cmd.Flags().Changed(name) {
					f()
					s.Help = "changed by flags; " + strings.TrimPrefix(s.Help, "changed by flags; ")
				}
			}
			given("files", func() { s.Files = files })
			if s.Rate > 0 {
				given("rate", func() { s.Rate = rate })
				given("measure", func() { s.Measure = forTime })
			} else {
				given("lines", func() { s.Lines = lines })
			}
			if f.Changed("rounds") {
				s.Rounds = o.rounds
			}
			if s.Rounds < 1 {
				return fmt.Errorf("cannot measure %d rounds: at least 1", s.Rounds)
			}
			if len(o.collectors) > 0 {
				s.Usual = o.collectors
			}
			if err := s.Validate(); err != nil {
				return err
			}
		}
		return ran(func(cmd *cobra.Command, _ []string) error { return runLogs(cmd, o, ss) })(cmd, args)
	}
	return cmd
}

// logScenarios returns the presets with these names, or the first one if there
// are no names.
func logScenarios(names []string) ([]bench.LogScenario, error) {
	switch {
	case len(names) == 0:
		return bench.LogScenarios()[:1], nil
	case len(names) == 1 && names[0] == "all":
		return bench.LogScenarios(), nil
	}
	var out []bench.LogScenario
	for _, name := range names {
		s, err := bench.LogScenarioNamed(name)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func logsHelp() string {
	var b strings.Builder
	b.WriteString(`Measure collectors of logs at scenarios: CPU seconds (user and system) for a
million lines that are read, and peak memory of the process, as the system counts
them. Files are written while the collector follows them; its last line must
arrive, and each once and in order. Collectors run one after the other, round by
round; a table of the medians is printed.

Scenarios (all is all of them, the first one is what is run without a name):
`)
	for _, s := range bench.LogScenarios() {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Name, s.Help)
	}
	return b.String()
}

func runLogs(cmd *cobra.Command, o runOptions, ss []bench.LogScenario) error {
	log := cmd.ErrOrStderr()
	reports := make([]*bench.LogReport, len(ss))
	bouts := make([]bout, len(ss))
	for i, s := range ss {
		r := &bench.LogReport{Scenario: s.Name, Help: s.Help, Began: time.Now(), Machine: bench.ThisMachine(), Command: commandLine()}
		reports[i] = r
		bouts[i] = bout{name: s.Name, usual: s.Usual, rounds: s.Rounds, skipped: &r.Skipped}
		bouts[i].measure = func(c *bench.Collector, n int, dir string) error {
			out, err := bench.MeasureLogs(cmd.Context(), c, s, n, dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(log, "  %.2f CPU s per million lines, %.0f MB, %.0f lines/s, %d of %d lines\n",
				out.PerMillion(), float64(out.PeakRSS)/1e6, float64(out.Lines)/out.Seconds, out.Delivered, out.Expected)
			r.Rounds = append(r.Rounds, out)
			if err := os.RemoveAll(filepath.Join(dir, "logs")); err != nil { // takes hundreds of MB
				return fmt.Errorf("cannot remove the logs of a round: %w", err)
			}
			return nil
		}
	}
	err := measure(cmd.Context(), o, bench.LogTemplates(), bouts, log)
	reports = slices.DeleteFunc(reports, func(r *bench.LogReport) bool { return len(r.Rounds) == 0 })
	if len(reports) == 0 {
		return err
	}
	err = errors.Join(err, bench.LogMarkdown(cmd.OutOrStdout(), reports...), writeJSON(o.json, reports))
	return delivered(err, reports)
}
