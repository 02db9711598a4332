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

// runShort runs a collector with a small load and returns the exit code, the
// report and the output.
func runShort(t *testing.T, scenario, collector string) (code int, report bench.Report, table string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "figures.json")
	var out, errOut bytes.Buffer
	code = execute(t.Context(), []string{"run", scenario, "--collectors=" + collector, "--json=" + file,
		"--targets=8", "--series=300", "--interval=1s", "--warmup=2s", "--measure=3s", "--rounds=1"}, strings.NewReader(""), &out, &errOut)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%s at %s ends with %d: %v\n%s%s", collector, scenario, code, err, &out, &errOut)
	}
	var reports []bench.Report
	if err := json.Unmarshal(b, &reports); err != nil || len(reports) != 1 {
		t.Fatalf("%d reports: %v", len(reports), err)
	}
	return code, reports[0], out.String() + errOut.String()
}

// TestRun measures the built weir and the installed peers at every scenario that
// they support. It runs all of them concurrently, because it tests the benchmark
// and not the results.
func TestRun(t *testing.T) {
	weir, err := filepath.Abs(os.Getenv("WEIR"))
	if err != nil || os.Getenv("WEIR") == "" {
		t.Fatal("WEIR is not set: run `make integration`")
	}
	f := func(scenario, name, program string) {
		t.Run(name+" "+scenario, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(program); err != nil {
				t.Skipf("%s is not there", program)
			}
			check(t, scenario, name, program)
		})
	}
	for _, s := range bench.Scenarios() {
		if !s.Ceiling { // uses all cores
			f(s.Name, "weir", weir)
		}
	}
	peers := filepath.Join("..", "..", "bin", "peers")
	f("relabel", "prometheus", filepath.Join(peers, "prometheus"))
	f("relabel", "vmagent", filepath.Join(peers, "vmagent"))
	f("v2", "prometheus3", filepath.Join("..", "..", "bin", "servers", "prometheus"))
}

func check(t *testing.T, scenario, name, program string) {
	code, r, table := runShort(t, scenario, name+"="+program)
	if len(r.Rounds) != 1 {
		t.Fatalf("%d rounds", len(r.Rounds))
	}
	o := r.Rounds[0]
	// 8 targets × 300 series, each scraped about 3 times.
	if o.Samples < 2400 || o.Samples > 5*2400 {
		t.Errorf("%s at %s: %+v", name, scenario, o)
	}
	// The results of peers on a busy machine are not checked (vmagent sends some
	// samples late).
	if name == "weir" && (code != 0 || o.Delivered != o.Expected || len(o.Faults) > 0 || strings.Contains(table, "**no**")) {
		t.Errorf("%s at %s ends with %d: %+v\n%s", name, scenario, code, o, table)
	}
	if o.PeakRSS < 5e6 || o.PeakRSS > 2e9 || o.CPUSeconds < 0 || o.CPUSeconds > 30 || o.Requests == 0 || o.Bytes == 0 {
		t.Errorf("%s at %s: %+v", name, scenario, o)
	}
	if !strings.Contains(table, "| all ") && !strings.Contains(table, "| **no**") {
		t.Errorf("%s at %s:\n%s", name, scenario, table)
	}
	t.Logf("%s at %s: %.2f CPU s per million samples, %d MB", name, scenario, o.PerMillion(), o.PeakRSS/1e6)
}
