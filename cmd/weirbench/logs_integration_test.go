//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/bench"
)

// TestLogs measures the built weir and the installed peers at every log scenario.
// It tests the benchmark and checks every line, but not the results.
func TestLogs(t *testing.T) {
	weir, err := filepath.Abs(os.Getenv("WEIR"))
	if err != nil || os.Getenv("WEIR") == "" {
		t.Fatal("WEIR is not set: run `make integration`")
	}
	peers := filepath.Join("..", "..", "bin", "peers")
	for _, s := range bench.LogScenarios() {
		f := func(name, program string) {
			t.Run(name+" "+s.Name, func(t *testing.T) {
				t.Parallel()
				if _, err := os.Stat(program); err != nil {
					t.Skipf("%s is not there", program)
				}
				checkLogs(t, s, name, program)
			})
		}
		f("weir", weir)
		if s.Stages == "" {
			f("rsyslog", filepath.Join(peers, "rsyslogd"))
			f("syslog-ng", filepath.Join(peers, "syslog-ng"))
		}
	}
}

func checkLogs(t *testing.T, s bench.LogScenario, name, program string) {
	file := filepath.Join(t.TempDir(), "figures.json")
	var out, errOut bytes.Buffer
	code := execute(t.Context(), []string{"logs", s.Name, "--collectors=" + name + "=" + program, "--json=" + file,
		"--lines=50000", "--files=20", "--rate=5000", "--measure=5s", "--rounds=1"}, strings.NewReader(""), &out, &errOut)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%s at %s ends with %d: %v\n%s%s", name, s.Name, code, err, &out, &errOut)
	}
	var reports []bench.LogReport
	if err := json.Unmarshal(b, &reports); err != nil || len(reports) != 1 || len(reports[0].Rounds) != 1 {
		t.Fatalf("%d reports: %v", len(reports), err)
	}
	o := reports[0].Rounds[0]
	// 5 of 20 lines are debug lines, which the scenarios with stages drop.
	if least := int64(18_000); o.Expected < least || o.Lines < least || o.PeakRSS < 5e6 || o.PeakRSS > 2e9 || o.CPUSeconds > 60 || o.Bytes == 0 {
		t.Errorf("%s at %s: %+v", name, s.Name, o)
	}
	// The results of peers on a busy machine are not checked.
	if name == "weir" && (code != 0 || o.Delivered != o.Expected || len(o.Faults) > 0 || strings.Contains(out.String(), "**no**")) {
		t.Errorf("%s at %s ends with %d: %+v\n%s%s", name, s.Name, code, o, &out, &errOut)
	}
	t.Logf("%s at %s: %.2f CPU s per million lines, %d MB", name, s.Name, o.PerMillion(), o.PeakRSS/1e6)
}

// TestLogOutage measures a short outage with log lines.
func TestLogOutage(t *testing.T) {
	t.Parallel()
	weir, err := filepath.Abs(os.Getenv("WEIR"))
	if err != nil || os.Getenv("WEIR") == "" {
		t.Fatal("WEIR is not set: run `make integration`")
	}
	var out, errOut bytes.Buffer
	code := execute(t.Context(), []string{"outage", "--logs", "--collector=weir=" + weir, "--files=10", "--rate=2000",
		"--warmup=4s", "--down=10s", "--max-growth=150", "--min-drain=1"}, strings.NewReader(""), &out, &errOut)
	if code != 0 || !strings.Contains(out.String(), "missing lines: 0, again: 0, out of order: 0") {
		t.Errorf("ends with %d\n%s%s", code, &out, &errOut)
	}
}
