package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weir/memory"
)

// TestReleaseProgram checks that a process of weir's size has fewer pages of its
// program in memory afterwards and continues to run. It uses a separate process,
// in which nothing else runs.
func TestReleaseProgram(t *testing.T) {
	const inChild = "WEIR_TEST_RELEASE"
	if os.Getenv(inChild) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestReleaseProgram$", "-test.v")
		cmd.Env = append(os.Environ(), inChild+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !bytes.Contains(out, []byte("--- PASS: TestReleaseProgram")) {
			t.Skipf("nothing was tested:\n%s", out)
		}
		return
	}
	before := filePages(t)
	if err := memory.ReleaseProgram(); err != nil {
		t.Fatal(err)
	}
	after := filePages(t)
	if after >= before {
		t.Errorf("%d kB of the program are in memory, before it were %d", after, before)
	}
	for range 2 { // released pages are loaded again, with the same content
		if err := memory.ReleaseProgram(); err != nil {
			t.Fatal(err)
		}
		if got := execute(t.Context(), newTerminal(os.Stdout, os.Stderr), []string{"components", "prometheus.scrape"}); got != exitOK {
			t.Errorf("exit code %d", got)
		}
	}
}

// filePages returns the size of the file pages of this process in memory, in kB.
func filePages(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "RssFile:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				t.Fatal(fmt.Errorf("cannot read %q: %w", line, err))
			}
			return n
		}
	}
	t.Skip("this system does not tell how much of a process's memory is files")
	return 0
}
