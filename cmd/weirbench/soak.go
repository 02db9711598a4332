package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/graph"
)

//go:embed soak
var soakFiles embed.FS

// soakFaults are the faults that saves put into the script, in turn.
var soakFaults = []string{
	`-- nothing`,
	`error("every batch")`,
	`batch:each(function(m) if m.name == "up" then error("a record") end end)`,
	`if n % 20 == 0 then while true do end end`,
	`if n % 20 == 0 then local t = {} ; for i = 1, 1e9 do t[i] = { i } end end`,
	`this is no Lua`,
	`local s = "x" ; while n % 20 == 0 do s = s .. s end`,
	`ctx.log.error("a line", { n = n })`,
	`local function f() return pcall(f) end f()`,
	`coroutine.wrap(function() error({}) end)()`,
	`batch:map_label("instance", function(v) if n % 2 == 0 then return nil + 1 end end)`,
	`for i = 1, 50 do ctx.state.seen:set("k" .. n .. "-" .. i, string.rep("v", 100)) end`,
}

func soakCommand() *cobra.Command {
	s := bench.Scenarios()[0]
	s.Warmup, s.Measure = time.Minute, 30*time.Minute
	collector, every, maxGrowth, csv, svg := "weir", 3*time.Second, 10.0, "", ""
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Save and break a script under load for half an hour",
		Long: `Run weir under load with a script that is saved again every few seconds, most
times with a fault: errors in hooks and records, endless loops, memory that
grows, deep recursion, a syntax error. The command measures the memory over time and
checks whether every sample arrives: on_error is "pass". The exit code is 1 if a
sample is missing or memory grows.`,
		Example: `  weirbench soak --svg=soak.svg
  weirbench soak --targets=10 --interval=1s --warmup=10s --measure=1m --every=1s`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return s.Validate() },
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			files, err := fs.Sub(soakFiles, "soak")
			if err != nil {
				return err
			}
			c, err := bench.FindCollector(cmd.Context(), files, collector)
			if err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "weirbench")
			if err != nil {
				return fmt.Errorf("cannot make a directory: %w", err)
			}
			defer os.RemoveAll(dir)
			k := &soak{dir: filepath.Join(dir, "collector"), log: filepath.Join(dir, c.Name+".log"), every: every}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			saved := make(chan error, 1)
			go func() { saved <- k.run(ctx) }()
			r, err := bench.Measure(ctx, c, s, 1, dir)
			cancel()
			if err = errors.Join(err, <-saved); err != nil {
				return err
			}
			return k.checkGrowth(cmd.OutOrStdout(), r, maxGrowth, csv, svg)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&collector, "collector", collector, "weir, or weir=program to use another program")
	f.DurationVar(&every, "every", every, "time between two saves")
	f.DurationVar(&s.Warmup, "warmup", s.Warmup, "time before memory is measured")
	f.DurationVar(&s.Measure, "measure", s.Measure, "time to measure")
	f.DurationVar(&s.Interval, "interval", s.Interval, "scrape interval")
	loadFlags(f, &s.Load)
	f.Float64Var(&maxGrowth, "max-growth", maxGrowth, "most that memory may grow, in percent")
	f.StringVar(&csv, "csv", "", "file to write the readings to")
	f.StringVar(&svg, "svg", "", "file to draw memory over time into")
	return cmd
}

// soak saves a script repeatedly.
type soak struct {
	dir, log string
	every    time.Duration
	saves    int
	counts   map[string]float64 // weir's own metrics when they were last read
}

// run saves until ctx ends.
func (k *soak) run(ctx context.Context) error {
	text, err := fs.ReadFile(soakFiles, "soak/weir/scripts/soak/work.lua")
	if err != nil {
		return err
	}
	file := filepath.Join(k.dir, "scripts", "soak", "work.lua")
	tick := time.NewTicker(k.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := os.Stat(file); err != nil {
			continue // weir has not started yet
		}
		k.saves++
		fault := fmt.Sprintf("%s -- save %d", soakFaults[k.saves%len(soakFaults)], k.saves)
		// Atomically, as editors do.
		next := file + ".new"
		if err := os.WriteFile(next, bytes.Replace(text, []byte("--FAULT--"), []byte(fault), 1), 0o666); err != nil {
			return fmt.Errorf("cannot save the script: %w", err)
		}
		if err := os.Rename(next, file); err != nil {
			return fmt.Errorf("cannot save the script: %w", err)
		}
		if counts, err := k.metrics(ctx); err == nil { // otherwise, weir has not started yet or was stopped
			k.counts = counts
		}
	}
}

var soakPage = regexp.MustCompile(`page:? +(https?://127\.0\.0\.1:\d+)`)

// soakMetrics are the metrics of weir that a soak reports.
var soakMetrics = []string{"weir_script_errors_total", "weir_script_vms_discarded_total", "weir_script_calls_total", "weir_component_builds_total", "go_goroutines"}

func (k *soak) metrics(ctx context.Context) (map[string]float64, error) {
	out, err := os.ReadFile(k.log)
	if err != nil {
		return nil, err
	}
	page := soakPage.FindSubmatch(out)
	if page == nil {
		return nil, errors.New("cannot find weir's page in its output")
	}
	req, err := http.NewRequestWithContext(ctx, "GET", string(page[1])+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot read weir's metrics: %w", err)
	}
	defer resp.Body.Close()
	p := expfmt.NewTextParser(model.UTF8Validation)
	fams, err := p.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot read weir's metrics: %w", err)
	}
	counts := map[string]float64{}
	for _, name := range soakMetrics {
		for _, m := range fams[name].GetMetric() {
			counts[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return counts, nil
}

// checkGrowth prints the report and returns an error if memory grew too much or data
// is missing.
func (k *soak) checkGrowth(w io.Writer, r *bench.Round, maxGrowth float64, csv, svg string) error {
	early, late := r.Growth()
	var b strings.Builder
	memory := r.Memory()
	fmt.Fprintf(&b, "%s %s: %.0f s, the script saved %d times\n\nmemory %s\n\n", r.Collector, r.Version, r.Seconds, k.saves, memory.Text(60))
	fmt.Fprintf(&b, "memory %.1f MB early, %.1f MB at the end (%+.1f %%), peak %.1f MB\n", early, late, 100*(late/early-1), float64(r.PeakRSS)/1e6)
	for _, name := range soakMetrics {
		fmt.Fprintf(&b, "%s %.0f\n", name, k.counts[name])
	}
	fmt.Fprintf(&b, "%d samples of %d arrived\n", r.Delivered, r.Expected)
	for _, f := range r.Faults {
		fmt.Fprintln(&b, f)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	var errs []error
	if svg != "" {
		var b bytes.Buffer
		errs = append(errs, graph.SVG(&b, "a script that is saved and broken every few seconds", "MB", memory), os.WriteFile(svg, b.Bytes(), 0o666))
	}
	if csv != "" {
		var b bytes.Buffer
		b.WriteString("seconds,rss_bytes,anon_bytes,cpu_seconds\n")
		for _, m := range r.Over {
			fmt.Fprintf(&b, "%.1f,%d,%d,%.2f\n", m.At, m.RSS, m.Anon, m.CPU)
		}
		errs = append(errs, os.WriteFile(csv, b.Bytes(), 0o666))
	}
	if r.Delivered != r.Expected {
		errs = append(errs, fmt.Errorf("%d samples arrived of %d", r.Delivered, r.Expected))
	}
	if k.counts["weir_script_errors_total"] == 0 {
		errs = append(errs, errors.New("no script failed: the faults were not met"))
	}
	if growth := 100 * (late/early - 1); early == 0 || growth > maxGrowth {
		errs = append(errs, fmt.Errorf("memory grew by %.1f %%, and may by %g %%", growth, maxGrowth))
	}
	return errors.Join(errs...)
}
