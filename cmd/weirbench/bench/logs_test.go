package bench

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
	"github.com/weir-run/weir/cmd/weirbench/sink"
)

func TestLogScenarios(t *testing.T) {
	for _, s := range LogScenarios() {
		if err := s.Validate(); err != nil {
			t.Errorf("scenario %s: %v", s.Name, err)
		}
		if got, err := LogScenarioNamed(s.Name); err != nil || got.Help != s.Help {
			t.Errorf("scenario %s is not found by its name: %v", s.Name, err)
		}
		for _, name := range s.Usual {
			if c, err := readCollector(LogTemplates(), name); err != nil || !c.Does(s.Name) {
				t.Errorf("%s cannot do %s: %v", name, s.Name, err)
			}
		}
	}
	if _, err := LogScenarioNamed("fast"); err == nil || !strings.Contains(err.Error(), `"fast": there are passthrough, native, lua,`) {
		t.Errorf("an unknown scenario gives %v", err)
	}
}

func TestLogValidate(t *testing.T) {
	f := func(want string, change func(*LogScenario)) {
		t.Helper()
		s := LogScenarios()[0]
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	f("0 files", func(s *LogScenario) { s.Files = 0 })
	f("fewer than the 20000 files", func(s *LogScenario) { s.Files = 20_000 })
	f("without lines", func(s *LogScenario) { s.Lines = 0 })
	f("without lines", func(s *LogScenario) { s.Rate = -1 })
	f("at least 1s", func(s *LogScenario) { s.Rate, s.Measure = 1, time.Millisecond })
}

// TestLogTemplates writes the files of each collector for each scenario; the
// integration test runs them.
func TestLogTemplates(t *testing.T) {
	names := collectorNames(LogTemplates())
	if diff := cmp.Diff([]string{"floor", "rsyslog", "syslog-ng", "weir"}, names); diff != "" {
		t.Fatal(diff)
	}
	h := Hello{Push: "http://127.0.0.1:1/push", Lines: "http://127.0.0.1:1/lines", TCP: "127.0.0.1:2"}
	for _, name := range names {
		c, err := readCollector(LogTemplates(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range LogScenarios() {
			if !c.Does(s.Name) {
				continue
			}
			dir := t.TempDir()
			j, err := newLogJob(s, dir, filepath.Join(dir, "logs"), h)
			if err != nil {
				t.Fatal(err)
			}
			cmd, err := c.prepare(dir, j)
			if err != nil {
				t.Errorf("%s, %s: %v", name, s.Name, err)
				continue
			}
			all := strings.Join(cmd.Args, " ")
			for _, f := range []string{"config.alloy", "rsyslog.conf", "syslog-ng.conf"} {
				b, err := os.ReadFile(filepath.Join(dir, f))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				all += string(b)
			}
			if !strings.Contains(all, filepath.Join(dir, "logs")) || !strings.Contains(all, "127.0.0.1") {
				t.Errorf("%s, %s: neither files nor the sink are named in\n%s", name, s.Name, all)
			}
			if name == "weir" && strings.Count(all, j.Next+".receiver") != 1 {
				t.Errorf("%s: lines do not go to %s in\n%s", s.Name, j.Next, all)
			}
		}
	}
	if _, err := newLogJob(LogScenarios()[0], "", "", Hello{}); err == nil {
		t.Error("a sink without an address gives no error")
	}
}

func TestLogJudge(t *testing.T) {
	pass, native := LogScenarios()[0], LogScenarios()[1]
	f := func(s LogScenario, want string, change func(*sink.Stats)) {
		t.Helper()
		written := logfiles.Stats{Lines: 30, Written: map[string]int{"00000i": 20, "00000d": 10, "00001d": 0}}
		got := sink.Stats{Lines: 20, First: map[string]int{"00000i": 1}, Last: map[string]int{"00000i": 20}}
		if s.Stages == "" {
			got.Lines, got.First["00000d"], got.Last["00000d"] = 30, 1, 10
		}
		change(&got)
		r := logRound{s: s}
		if faults := strings.Join(r.findFaults(written, got), "; "); faults != want {
			t.Errorf("got %q, want %q", faults, want)
		}
	}
	f(pass, "", func(*sink.Stats) {})
	f(native, "", func(*sink.Stats) {})
	f(pass, "lines 1 to 20 of 00000i were to arrive, 1 to 19 did; 29 lines arrived of 30", func(s *sink.Stats) { s.Last["00000i"], s.Lines = 19, 29 })
	f(pass, "lines 1 to 20 of 00000i were to arrive, 2 to 20 did; 29 lines arrived of 30", func(s *sink.Stats) { s.First["00000i"], s.Lines = 2, 29 })
	f(native, "lines 1 to 0 of 00000d were to arrive, 3 to 3 did; 21 lines arrived of 20", func(s *sink.Stats) {
		s.First["00000d"], s.Last["00000d"], s.Lines = 3, 3, 21
	})
	f(native, "lines 1 to 0 of 00007i were to arrive, 1 to 1 did; 21 lines arrived of 20", func(s *sink.Stats) {
		s.First["00007i"], s.Last["00007i"], s.Lines = 1, 1, 21
	})
	f(pass, "1 gaps in sequences; 2 duplicates in sequences; 3 late numbers in sequences; 4 lines that nobody wrote; 5 requests that cannot be read",
		func(s *sink.Stats) { s.Gaps, s.Duplicates, s.Reordered, s.Unnumbered, s.Invalid = 1, 2, 3, 4, 5 })
	many := logfiles.Stats{Written: map[string]int{}}
	for _, name := range strings.Split("00000i 00000w 00000e 00001i 00001w 00001e", " ") {
		many.Written[name] = 1
	}
	if faults := (&logRound{s: pass}).findFaults(many, sink.Stats{}); len(faults) != 5 || faults[3] != "3 more sequences like that" {
		t.Errorf("got %q", faults)
	}
}

func TestLogMarkdown(t *testing.T) {
	rounds := func(title string, cpu ...float64) (out []*LogRound) {
		for i, c := range cpu {
			out = append(out, &LogRound{
				Collector: title, Version: "1.2", Number: i + 1, Seconds: 4, CPUSeconds: c, Lines: 2_000_000, Bytes: 100e6,
				PeakRSS: int64(c * 50e6), Expected: 2_010_000, Delivered: 2_010_000, OtherCores: 0.5,
			})
		}
		return out
	}
	a, b := rounds("weir", 3, 1, 2), rounds("rsyslog", 4)
	b[0].Faults, b[0].Delivered = []string{"9 gaps in sequences"}, 2_009_991
	r := &LogReport{
		Scenario: "passthrough", Help: "as they are", Machine: Machine{OS: "linux", Arch: "arm64", Cores: 2, Memory: 8e9, Kernel: "6.1"},
		Command: "weirbench logs", Skipped: []string{"other: not there"}, Rounds: []*LogRound{a[0], b[0], a[1], a[2]},
	}
	want := `passthrough: as they are

| scenario | collector | version | CPU s per million lines | peak RSS | lines/s | bytes sent/line | delivered |
|---|---|---|---|---|---|---|---|
| passthrough | weir | 1.2 | 1.00 (0.50–1.50) | 100 MB (50–150) | 500000 | 50.0 | all 6030000 |
| passthrough | rsyslog | 1.2 | 2.00 | 200 MB | 500000 | 50.0 | **no**: 2009991 of 2010000, 1 rounds with faults |

skipped: other: not there

passthrough, rsyslog, round 1: 9 gaps in sequences

Medians (lowest to highest in parentheses), the collectors in turn, on 2 × arm64, 8 GB, linux 6.1; other programs used 0.50 cores meanwhile (at most 0.50).
Command: ` + "`weirbench logs`\n"
	var out strings.Builder
	if err := LogMarkdown(&out, r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if r.Complete() || !(&LogReport{Rounds: a}).Complete() {
		t.Error("a round with faults is complete, or one without is not")
	}
}
