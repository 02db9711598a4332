package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/graph"
)

// outageOptions are the flags of weirbench outage.
type outageOptions struct {
	collector, templates   string
	down                   time.Duration
	maxGrowth, minDrain    float64
	json, csv, graph, keep string

	logs  bool // lines instead of samples, with this number of files and rate
	files int
	rate  int
}

// lines returns the scenario for an outage with log lines.
func (o outageOptions) lines(warmup time.Duration) bench.LogScenario {
	s := bench.LogOutage()
	s.Files, s.Rate, s.Measure = o.files, o.rate, warmup
	return s
}

func outageCommand() *cobra.Command {
	s := bench.Scenarios()[0]
	s.Warmup = 4 * time.Minute
	o := outageOptions{collector: "weir", down: 10 * time.Minute, maxGrowth: 10, minDrain: 5, files: 100, rate: 20_000}
	cmd := &cobra.Command{
		Use:   "outage",
		Short: "Measure memory and backlog while the endpoint is dead",
		Long: `Run a collector under load, break its endpoint for some minutes and repair it
again. The command measures the memory before and during the outage, the size of the
backlog and how quickly it is sent, whether scrapes are late because of it, and
whether everything arrives. The exit code is 1 if something is missing or a limit is
exceeded.`,
		Example: `  weirbench outage --csv=outage.csv --graph=outage
  weirbench outage --targets=10 --interval=1s --warmup=10s --down=20s --max-growth=50
  weirbench outage --logs --csv=outage.csv   lines to Loki's push, not samples`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if o.down < time.Second || s.Warmup < 2*time.Second {
				return errors.New("cannot tell anything so quickly: --down is at least 1s and --warmup 2s")
			}
			if o.logs {
				return o.lines(s.Warmup).Validate()
			}
			return s.Validate()
		},
		RunE: ran(func(cmd *cobra.Command, _ []string) error { return measureOutage(cmd, o, s) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.collector, "collector", o.collector, "name, or name=program to use another program")
	f.StringVar(&o.templates, "templates", "", "folder of collectors, in place of the built-in ones")
	f.DurationVar(&o.down, "down", o.down, "how long the endpoint is dead")
	f.DurationVar(&s.Warmup, "warmup", s.Warmup, "time before, and half of it is measured before and after too")
	f.DurationVar(&s.Interval, "interval", s.Interval, "scrape interval")
	loadFlags(f, &s.Load)
	f.BoolVar(&o.logs, "logs", false, "lines of files to Loki's push, in place of samples of targets")
	f.IntVar(&o.files, "files", o.files, "with --logs: number of files")
	f.IntVar(&o.rate, "rate", o.rate, "with --logs: lines a second, over all files")
	f.Float64Var(&o.maxGrowth, "max-growth", o.maxGrowth, "most that memory may grow in the outage, in percent")
	f.Float64Var(&o.minDrain, "min-drain", o.minDrain, "how many times as quick as live ones the backlog must be sent")
	f.StringVar(&o.json, "json", "", "file to write all figures to")
	f.StringVar(&o.csv, "csv", "", "file to write the readings to")
	f.StringVar(&o.graph, "graph", "", "begin of the names of two SVGs to draw: -memory.svg and -backlog.svg")
	f.StringVar(&o.keep, "keep", "", "folder to keep configs, logs and the journal in")
	return cmd
}

func measureOutage(cmd *cobra.Command, o outageOptions, s bench.Scenario) (err error) {
	templates := bench.Templates()
	if o.logs {
		templates = bench.LogTemplates()
	}
	if o.templates != "" {
		templates = os.DirFS(o.templates)
	}
	c, err := bench.FindCollector(cmd.Context(), templates, o.collector)
	if err != nil {
		return err
	}
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "weirbench"); err != nil {
			return fmt.Errorf("cannot make a directory: %w", err)
		}
		defer os.RemoveAll(dir)
	} else if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	var r *bench.Outage
	if o.logs {
		r, err = bench.MeasureLogOutage(cmd.Context(), c, o.lines(s.Warmup), o.down, dir, cmd.ErrOrStderr())
	} else {
		r, err = bench.MeasureOutage(cmd.Context(), c, s, o.down, dir, cmd.ErrOrStderr())
	}
	if err != nil {
		return fmt.Errorf("cannot measure %s: %w", c.Title, err)
	}
	r.Command = strings.Join(append([]string{"weirbench"}, os.Args[1:]...), " ")
	if err := errors.Join(r.Text(cmd.OutOrStdout()), o.write(r)); err != nil {
		return err
	}
	var errs []error
	if r.Missing+r.Duplicates+r.Reordered > 0 {
		errs = append(errs, fmt.Errorf("%d %s are missing, %d came again, %d came late", r.Missing, r.Unit, r.Duplicates, r.Reordered))
	}
	if g := 100 * r.Growth(); g > o.maxGrowth {
		errs = append(errs, fmt.Errorf("memory grew by %.1f %%, and may by %g %%", g, o.maxGrowth))
	}
	if f := r.DrainFactor(); f < o.minDrain {
		errs = append(errs, fmt.Errorf("the backlog was sent %.1f times as quick as live %s, and must be %g times", f, r.Unit, o.minDrain))
	}
	return errors.Join(errs...)
}

// write writes the requested reports.
func (o outageOptions) write(r *bench.Outage) error {
	var errs []error
	file := func(path string, render func(b *bytes.Buffer) error) {
		if path == "" {
			return
		}
		var b bytes.Buffer
		err := render(&b)
		if err == nil {
			err = os.WriteFile(path, b.Bytes(), 0o666)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot write figures: %w", err))
		}
	}
	file(o.json, func(b *bytes.Buffer) error {
		e := json.NewEncoder(b)
		e.SetIndent("", "  ")
		return e.Encode(r)
	})
	file(o.csv, func(b *bytes.Buffer) error { return r.CSV(b, 200) })
	if o.graph != "" {
		memory, backlog := r.Lines()
		title := fmt.Sprintf("%s, endpoint dead from %.0f to %.0f s", r.Help, r.DownAt, r.UpAt)
		file(o.graph+"-memory.svg", func(b *bytes.Buffer) error { return graph.SVG(b, title, "MB", memory) })
		file(o.graph+"-backlog.svg", func(b *bytes.Buffer) error { return graph.SVG(b, title, "M", backlog) })
	}
	return errors.Join(errs...)
}
