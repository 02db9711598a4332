//go:build integration

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runFaults runs weirbench faults and returns the exit code and the output.
func runFaults(t *testing.T, program string, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := execute(t.Context(), append([]string{"faults", "--weir=" + program, "--interval=300ms"}, args...), strings.NewReader(""), &out, &out)
	return code, out.String()
}

func builtWeir(t *testing.T) string {
	t.Helper()
	weir, err := filepath.Abs(os.Getenv("WEIR"))
	if err != nil || os.Getenv("WEIR") == "" {
		t.Fatal("WEIR is not set: run `make integration`")
	}
	return weir
}

// TestFaults performs every kind of fault once, in a random order. The output
// contains the seed for repeating it.
func TestFaults(t *testing.T) {
	t.Parallel()
	// The machine may be slow: the duration of a stop and the exact rate of a
	// slow endpoint are measured by `make faults`. Without merged requests, the
	// backlog of a slow endpoint would drain at less than half of the rate, or
	// not at all.
	code, out := runFaults(t, builtWeir(t), "--steps=34", "--stop-within=30s", "--min-drain=0.6")
	t.Log(out)
	if code != 0 || !strings.HasSuffix(out, "\nlost = 0\n") {
		t.Errorf("exit status %d", code)
	}
}

// TestFaultsFindLoss runs a weir that loses the oldest segment of its journal
// between two processes.
func TestFaultsFindLoss(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "weir")
	script := fmt.Sprintf(`#!/bin/sh
for a in "$@"; do
  case "$a" in --storage.path=*) data="${a#--storage.path=}" ;; esac
done
find "$data/journal" -name '*.seg' 2>/dev/null | sort | head -n 1 | xargs -r rm -f
exec %q "$@"
`, builtWeir(t))
	if err := os.WriteFile(program, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	code, out := runFaults(t, program, "--steps=1", "--only=at rest", "--patience=15s")
	if code != 1 || strings.Contains(out, "lost = 0\n") || !strings.Contains(out, "samples were in the journal of a process that died") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

// TestFaultsFindWrongVersion runs a weir that does not test scripts, so a version that fails
// its tests runs after a restart.
func TestFaultsFindWrongVersion(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "weir")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != run ] || set -- \"$@\" --scripts.test=false\nexec %q \"$@\"\n", builtWeir(t))
	if err := os.WriteFile(program, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	code, out := runFaults(t, program, "--steps=1", "--only=reload: refusal")
	if code != 1 || !strings.Contains(out, "WRONG: after the restart, version") {
		t.Errorf("exit status %d:\n%s", code, out)
	}
}

// TestOutage measures a short outage. It checks that nothing is missing; the
// costs are measured by a longer one on an idle machine.
func TestOutage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	code := execute(t.Context(), []string{"outage", "--collector=weir=" + builtWeir(t), "--targets=20", "--series=300", "--interval=2s",
		"--warmup=8s", "--down=15s", "--max-growth=100", "--min-drain=0",
		"--json=" + filepath.Join(dir, "o.json"), "--csv=" + filepath.Join(dir, "o.csv"), "--graph=" + filepath.Join(dir, "o"),
	}, strings.NewReader(""), &out, &out)
	t.Log(out.String())
	if code != 0 || !strings.Contains(out.String(), "missing samples: 0, again: 0, out of order: 0") {
		t.Errorf("exit status %d", code)
	}
	for _, name := range []string{"o.json", "o.csv", "o-memory.svg", "o-backlog.svg"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Size() < 500 {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
}
