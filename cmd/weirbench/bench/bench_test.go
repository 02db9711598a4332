package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/config"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

func TestScenarios(t *testing.T) {
	for _, s := range Scenarios() {
		if err := s.Validate(); err != nil {
			t.Errorf("scenario %s: %v", s.Name, err)
		}
		if got, err := ScenarioNamed(s.Name); err != nil || got.Help != s.Help {
			t.Errorf("scenario %s is not found by its name: %v", s.Name, err)
		}
	}
	if _, err := ScenarioNamed("fast"); err == nil || !strings.Contains(err.Error(), `"fast": there are passthrough, million,`) {
		t.Errorf("an unknown scenario gives %v", err)
	}
	// The descriptions of the scenarios match their settings.
	kept := func(name string) int {
		s, err := ScenarioNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.kept()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := kept("passthrough"); n != 1000 {
		t.Errorf("passthrough keeps %d of 1000", n)
	}
	for _, s := range Scenarios() {
		for _, name := range s.Usual {
			if c, err := readCollector(Templates(), name); err != nil || !c.Does(s.Name) {
				t.Errorf("%s cannot do %s: %v", name, s.Name, err)
			}
		}
		if s.Rounds < 1 {
			t.Errorf("scenario %s has %d rounds", s.Name, s.Rounds)
		}
	}
	if n := kept("relabel"); n < 480 || n > 540 {
		t.Errorf("relabel keeps %d of 1000, not half", n)
	}
	b, err := target.NewBody(target.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	scaled := b.Count(func(name string) bool {
		return strings.HasPrefix(name, "http_response_size_bytes") || name == "app_cache_entries"
	})
	if scaled < 270 || scaled > 330 {
		t.Errorf("lua-scale scales %d of 1000, not three in ten", scaled)
	}
}

func TestValidate(t *testing.T) {
	f := func(want string, change func(*Scenario)) {
		t.Helper()
		s := Scenarios()[0]
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	f("0 targets", func(s *Scenario) { s.Load.Targets = 0 })
	f("without sequence series", func(s *Scenario) { s.Load.Sequences = 0 })
	f("whole seconds", func(s *Scenario) { s.Interval = 1500 * time.Millisecond })
	f("whole seconds", func(s *Scenario) { s.Interval = 0 })
	f("scraped every 5s", func(s *Scenario) { s.Measure = time.Second })
	f("multiple of the interval", func(s *Scenario) { s.Measure = 12 * time.Second })
}

// TestTemplates writes the files of each collector for each scenario. Those of
// Prometheus are parsed by its own config package; those of weir and vmagent are
// tested by the integration test.
func TestTemplates(t *testing.T) {
	names := collectorNames(Templates())
	if want := []string{"prometheus", "prometheus3", "vmagent", "weir"}; !slices.Equal(names, want) {
		t.Fatalf("got collectors %v, want %v", names, want)
	}
	for _, name := range names {
		c, err := readCollector(Templates(), name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range Scenarios() {
			if !c.Does(s.Name) {
				continue
			}
			dir := t.TempDir()
			cmd, err := c.prepare(dir, newJob(s, dir, "http://127.0.0.1:1/api/v1/write", []string{"127.0.0.1:2", "127.0.0.1:3"}))
			if err != nil {
				t.Errorf("%s, %s: %v", name, s.Name, err)
				continue
			}
			if joined := strings.Join(cmd.Args, " "); !strings.Contains(joined, dir) || strings.Contains(joined, "{{") {
				t.Errorf("%s, %s: command line %q", name, s.Name, joined)
			}
			if !strings.HasPrefix(name, "prometheus") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, "prometheus.yml"))
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(string(b), nil)
			if err != nil {
				t.Errorf("%s, %s: Prometheus does not take its config: %v\n%s", name, s.Name, err, b)
				continue
			}
			if got := time.Duration(cfg.ScrapeConfigs[0].ScrapeInterval); got != s.Interval {
				t.Errorf("%s, %s: scrapes every %s", name, s.Name, got)
			}
			if got := len(cfg.ScrapeConfigs[0].MetricRelabelConfigs) > 0; got != (s.Drop != "") {
				t.Errorf("%s, %s: relabels is %t", name, s.Name, got)
			}
		}
	}
}

func TestFindCollector(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "prog")
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	spec := func(s string) fs.FS {
		return fstest.MapFS{"mine/collector.json": {Data: []byte(s)}, "other/collector.json": {Data: []byte("{}")}}
	}
	good := spec(fmt.Sprintf(`{"programs": ["/nowhere/prog", %q], "version": ["-v"], "version_pattern": "version (\\S+)"}`, program))
	find := func(templates fs.FS, wanted string) string {
		c, err := FindCollector(t.Context(), templates, wanted)
		if err != nil {
			return err.Error()
		}
		return c.Title + " " + c.Version
	}
	f := func(templates fs.FS, wanted, want string) {
		t.Helper()
		if got := find(templates, wanted); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", wanted, got, want)
		}
	}
	f(good, "mine", "cannot find mine: none of /nowhere/prog, "+program+" is there; `make peers`")
	_, err := FindCollector(t.Context(), good, "mine")
	if _, ok := errors.AsType[*NotInstalledError](err); !ok {
		t.Errorf("got %v, want a NotInstalledError", err)
	}
	write("prog", "#!/bin/sh\necho \"prog, version 1.2.3 (abc)\"\n")
	f(good, "mine", "mine 1.2.3")
	f(good, "mine="+program, "mine ("+program+") 1.2.3")
	f(good, "none", `"none": there are mine, other`)
	f(spec("{"), "mine", "cannot read collector.json of mine")
	f(spec(fmt.Sprintf(`{"programs": [%q], "version_pattern": "("}`, program)), "mine", "cannot read version_pattern")
	// A program that does not print its version.
	write("prog", "#!/bin/sh\necho\n")
	f(good, "mine", "mine unknown")
	write("prog.version", "4.5\n")
	f(good, "mine", "mine 4.5")
	write("prog", "#!/bin/sh\necho broken; exit 3\n")
	f(good, "mine", "for its version: exit status 3: broken")
}

func TestExpandErrors(t *testing.T) {
	c := &Collector{Name: "c", files: fstest.MapFS{"f": {Data: []byte("{{.Nothing}}")}}}
	if _, err := c.prepare(t.TempDir(), job{}); err == nil || !strings.Contains(err.Error(), "cannot write the config of c") {
		t.Errorf("got %v", err)
	}
	c = &Collector{Name: "c", files: fstest.MapFS{}, spec: spec{Args: []string{"{{"}}}
	if _, err := c.prepare(t.TempDir(), job{}); err == nil || !strings.Contains(err.Error(), "cannot write the command line of c") {
		t.Errorf("got %v", err)
	}
}

func TestJudge(t *testing.T) {
	s := Scenarios()[0]
	s.Load.Targets, s.Interval, s.Warmup, s.Measure = 2, time.Second, 2*time.Second, 8*time.Second
	good := func() (target.Stats, sink.Stats) {
		return target.Stats{Scrapes: map[string]int{"a": 10, "b": 10}},
			sink.Stats{Samples: 20_000, Requests: 5, First: map[string]int{"a": 1, "b": 1}, Last: map[string]int{"a": 10, "b": 10}}
	}
	f := func(want string, change func(*target.Stats, *sink.Stats)) {
		t.Helper()
		served, got := good()
		change(&served, &got)
		r := round{s: s, kept: 1000, out: Round{Samples: 16_000}}
		if faults := strings.Join(r.findFaults(served, got), "; "); faults != want {
			t.Errorf("got %q, want %q", faults, want)
		}
	}
	f("", func(*target.Stats, *sink.Stats) {})
	f("19000 samples arrived of 20000", func(_ *target.Stats, got *sink.Stats) { got.Samples = 19_000 })
	f("20005 samples arrived of 20000", func(_ *target.Stats, got *sink.Stats) { got.Samples = 20_005 })
	f("scrapes 1 to 10 of b were answered, 1 to 9 arrived", func(_ *target.Stats, got *sink.Stats) { got.Last["b"] = 9 })
	f("scrapes 1 to 10 of b were answered, 2 to 10 arrived", func(_ *target.Stats, got *sink.Stats) { got.First["b"] = 2 })
	f("scrapes 1 to 10 of b were answered, 0 to 0 arrived", func(_ *target.Stats, got *sink.Stats) {
		delete(got.First, "b")
		delete(got.Last, "b")
	})
	f("2 gaps in sequences", func(_ *target.Stats, got *sink.Stats) { got.Gaps = 2 })
	f("2 duplicates in sequences", func(_ *target.Stats, got *sink.Stats) { got.Duplicates = 2 })
	f("2 late numbers in sequences", func(_ *target.Stats, got *sink.Stats) { got.Reordered = 2 })
	f("1 requests that cannot be read", func(_ *target.Stats, got *sink.Stats) { got.Invalid = 1 })
	f("3 scrapes were not read to their end", func(served *target.Stats, _ *sink.Stats) { served.Aborted = 3 })
	f("10 scrapes were made where about 20 were due", func(served *target.Stats, got *sink.Stats) {
		served.Scrapes["a"], served.Scrapes["b"] = 5, 5
		got.Last["a"], got.Last["b"], got.Samples = 5, 5, 10_000
	})
	s.Measure, s.Warmup = 100*time.Second, -90*time.Second
	f("16000 samples arrived while measuring where about 200000 were due: it was catching up, or falling behind", func(*target.Stats, *sink.Stats) {})
	s.Measure, s.Warmup = 8*time.Second, 2*time.Second
	s.V2 = true
	f("4 of 5 requests were of remote write 2.0", func(_ *target.Stats, got *sink.Stats) { got.V2 = 4 })
	f("", func(_ *target.Stats, got *sink.Stats) { got.V2 = 5 })
}

func TestManyFaults(t *testing.T) {
	r := round{kept: 1, s: Scenario{Load: target.Defaults(), Interval: time.Hour, Measure: time.Second}}
	served := target.Stats{Scrapes: map[string]int{}}
	for i := range 9 {
		served.Scrapes[fmt.Sprint(i)] = 1
	}
	faults := r.findFaults(served, sink.Stats{})
	if len(faults) != 5 || faults[3] != "6 more targets like that" {
		t.Errorf("got %q", faults)
	}
}

func TestMarkdown(t *testing.T) {
	rounds := func(title string, cpu ...float64) (out []*Round) {
		for i, c := range cpu {
			out = append(out, &Round{
				Collector: title, Version: "1.2", Number: i + 1, Seconds: 60, CPUSeconds: c, Samples: 1_000_000,
				Bytes: 23_500_000, PeakRSS: int64(c * 50e6), FirstAfter: 1.25, Expected: 1_200_000, Delivered: 1_200_000, OtherCores: 0.25, Scraped: 1000,
			})
		}
		return out
	}
	machine := Machine{OS: "linux", Arch: "amd64", Cores: 2, CPU: "EPYC", Memory: 25e9, Kernel: "6.1"}
	pass := &Report{
		Scenario: "passthrough", Help: "as it is", Machine: machine,
		Command: "weirbench run", Skipped: []string{"other: not there"},
		Rounds: append(rounds("weir", 1.5, 1, 2), rounds("vmagent", 4, 3)...),
	}
	pass.Rounds[4].Faults, pass.Rounds[4].Delivered = []string{"1 gaps in sequences"}, 1_199_000
	scale := &Report{Scenario: "lua-scale", Help: "three in ten", Machine: machine, Rounds: rounds("weir", 1.8)}
	for i := range 100 { // memory increases from 10 to 30 MB
		scale.Rounds[0].Over = append(scale.Rounds[0].Over, Meter{At: float64(i), RSS: int64(10e6 + float64(i)/99*20e6)})
	}
	scale.Rounds[0].Seconds, scale.Rounds[0].Scraped = 400, 1000*400/60
	half := &Report{Scenario: "relabel", Help: "half of it", Machine: machine, Rounds: append(rounds("weir", 1.2), rounds("vmagent", 4)...)}
	half.Rounds[0].Samples /= 2 // more CPU per sent sample, less per scrape
	other := &Report{Scenario: "million", Help: "more", Machine: machine, Rounds: rounds("weir", 1)}
	other.Rounds[0].Scraped = 800
	top := &Report{Scenario: "ceiling", Help: "more and more", Machine: machine, Rounds: rounds("weir", 0.5)}
	top.Rounds[0].Tried = []Try{{Rate: 200e3}, {Rate: 300e3, Why: "late"}, {Rate: 250e3}}
	top.Rounds[0].SinkCPU, top.Rounds[0].TargetCPU = 15, 12
	want := `passthrough: as it is

lua-scale: three in ten

relabel: half of it

million: more

ceiling: more and more

| scenario | collector | version | CPU s per million samples | peak RSS | compared | samples/s | bytes/sample | all targets after | delivered |
|---|---|---|---|---|---|---|---|---|---|
| passthrough | weir | 1.2 | 1.50 (1.00–2.00) | 75 MB (50–100) | 0.43 × CPU, 0.43 × RSS of vmagent's | 16667 | 23.5 | 1.2 s | all 3600000 |
| passthrough | vmagent | 1.2 | 3.50 (3.00–4.00) | 175 MB (150–200) |  | 16667 | 23.5 | 1.2 s | **no**: 2399000 of 2400000, 1 rounds with faults |
| lua-scale | weir | 1.2 | 1.80 | 90 MB | 0.18 × CPU, 1.20 × RSS of passthrough's | 2500 | 23.5 | 1.2 s | all 1200000 |
| relabel | weir | 1.2 | 2.40 | 60 MB | 0.60 × CPU, 0.30 × RSS of vmagent's; 0.80 × CPU, 0.80 × RSS of passthrough's | 8333 | 47.0 | 1.2 s | all 1200000 |
| relabel | vmagent | 1.2 | 4.00 | 200 MB |  | 16667 | 23.5 | 1.2 s | all 1200000 |
| million | weir | 1.2 | 1.00 | 50 MB |  | 16667 | 23.5 | 1.2 s | all 1200000 |

skipped: other: not there

passthrough, vmagent, round 2: 1 gaps in sequences

lua-scale, weir, round 1: memory went from 14 MB after a sixth of the time to 29 MB at its end (+106 %): ` + "`▃▃▃▃▄▄▄▄▄▄▄▄▄▄▄▅▅▅▅▅▅▅▅▅▅▅▆▆▆▆▆▆▆▆▆▆▆▇▇▇▇▇▇▇▇▇▇▇▇███████████`" + `

| collector | version | samples/s that it held on one core | CPU s per million samples | peak RSS | targets and sink used of the other cores | did not hold |
|---|---|---|---|---|---|---|
| weir | 1.2 | 250000 | 0.50 | 25 MB | 0.45 | 300000: late |

Medians (lowest to highest in parentheses), the collectors in turn, on 2 × EPYC, 25 GB, linux 6.1; passthrough 3 × 60 s, lua-scale 1 × 400 s, relabel 1 × 60 s, million 1 × 60 s after the warm-up; other programs used 0.25 cores meanwhile (at most 0.25).
Command: ` + "`weirbench run`\n"
	var b strings.Builder
	if err := Markdown(&b, pass, scale, half, other, top); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if pass.Complete() {
		t.Error("a report with a fault is complete")
	}
	pass.Rounds = pass.Rounds[:4]
	if !pass.Complete() {
		t.Error("a report without a fault is not complete")
	}
}

// TestUsage compares the result with the values that the kernel reports to the
// parent of a process.
func TestUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := readUsage(os.Getpid()); err == nil || !strings.Contains(err.Error(), "Linux's /proc") {
			t.Errorf("got %v", err)
		}
		return
	}
	// Otherwise, memory of other tests would be reused. Where the kernel allows
	// it, their peak is reset.
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	began := time.Now()
	before, err := readUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	all, err := busy()
	if err != nil {
		t.Fatal(err)
	}
	ballast := make([]byte, before.Peak-before.RSS+64<<20) // exceeds the previous peak
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i]++
	}
	now := before
	for n := 0; now.CPU-before.CPU < 0.1; n++ { // takes longer than 100 ms on a busy machine
		ballast[n%len(ballast)]++
		if n%1e6 == 0 {
			if now, err = readUsage(os.Getpid()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Fatalf("%s of work took %.3f s of CPU", took, now.CPU-before.CPU)
			}
		}
	}
	after, err := readUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	allAfter, err := busy()
	if err != nil {
		t.Fatal(err)
	}
	if d, took := after.CPU-before.CPU, time.Since(began).Seconds(); d > (took+0.1)*float64(runtime.NumCPU()) {
		t.Errorf("%.3f s of work took %.3f s of CPU", took, d)
	}
	if d := allAfter - all; d < 0.05 {
		t.Errorf("the machine did %.3f s of work meanwhile", d)
	}
	if after.Peak-before.Peak < 32<<20 {
		t.Errorf("with 64 MiB more touched the peak went from %d to %d bytes", before.Peak, after.Peak)
	}
	if after.Anon <= 0 || after.Anon > after.RSS || after.RSS > after.Peak {
		t.Errorf("got %+v", after)
	}
	if _, err := readUsage(1 << 30); err == nil || !strings.Contains(err.Error(), "cannot measure process 1073741824") {
		t.Errorf("a process that is not there gives %v", err)
	}
	runtime.KeepAlive(ballast)
}

func TestProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it runs shell commands")
	}
	dir := t.TempDir()
	p, err := startProcess("short", exec.Command("sh", "-c", "echo too bad; exit 3"), dir, cores{})
	if err != nil {
		t.Fatal(err)
	}
	<-p.gone
	if err := p.stop(); err == nil || !strings.Contains(err.Error(), "short ended by itself (exit status 3); its last output:\ntoo bad") {
		t.Errorf("got %v", err)
	}
	if p, err = startProcess("long", exec.Command("sleep", "1000"), dir, cores{}); err != nil {
		t.Fatal(err)
	}
	if err := p.ended(); err != nil {
		t.Error(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if _, err := startProcess("none", exec.Command("/nowhere/prog"), dir, cores{}); err == nil || !strings.Contains(err.Error(), "cannot start none") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := round{program: p, sink: &child{process: p}, targets: &child{process: p}}
	if err := r.wait(ctx, time.Hour); err == nil {
		t.Error("waiting did not end with a process")
	}
}
