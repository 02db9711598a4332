package node

import (
	"fmt"
	"net/http"
)

// TestReport is the outcome of all tests of a script.
type TestReport struct {
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Errors  int     `json:"errors"`  // including files that cannot be used
	Pending int     `json:"pending"` // tests that are skipped
	Seconds float64 `json:"seconds"`
	// Stopped is why not all tests ran.
	Stopped string `json:"stopped,omitempty"`
	// Files are the script with its examples, and its test file; those without tests are
	// left out.
	Files []TestFile `json:"files"`
	// Coverage are the script and the modules that it uses. The script is always the first.
	Coverage []TestCoverage `json:"coverage"`
}

// TestFile is the outcome of the tests of a file.
type TestFile struct {
	File    string  `json:"file"`
	Seconds float64 `json:"seconds"`
	// Problem is why the file cannot be used.
	Problem *TestProblem `json:"problem,omitempty"`
	Tests   []TestResult `json:"tests"`
	// Omitted is the number of tests that ran and are not listed.
	Omitted int `json:"omitted,omitempty"`
	// Obsolete are names of snapshots that no test checks.
	Obsolete []string `json:"obsolete_snapshots,omitempty"`
}

// TestResult is the outcome of a test.
type TestResult struct {
	Name    string       `json:"name"`
	Line    int          `json:"line"`
	Status  string       `json:"status"` // passed, failed, error or pending
	Seconds float64      `json:"seconds"`
	Problem *TestProblem `json:"problem,omitempty"`
	Output  []string     `json:"output,omitempty"` // lines that the test and the script have printed
}

// TestProblem is an error or an assertion that does not hold, with its position.
type TestProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // starts at 1; 0 if it is unknown
	Column  int    `json:"column,omitempty"`
	Source  string `json:"source,omitempty"` // the line
	Message string `json:"message"`
	Diff    string `json:"diff,omitempty"` // lines that begin with "- " are expected
}

// TestCoverage is what the tests ran of a file.
type TestCoverage struct {
	File string `json:"file"`
	Text string `json:"text"` // as it was tested
	// Lines are those in which statements begin; empty if the file cannot be used.
	Lines    []CoveredLine   `json:"lines"`
	Branches []CoveredBranch `json:"branches"`
}

// CoveredLine is how often a line ran. If several statements begin in it, it is the one
// that ran least.
type CoveredLine struct {
	Line int   `json:"line"`
	Hits int64 `json:"hits"`
}

// CoveredBranch is how often each branch of an if ran.
type CoveredBranch struct {
	Line int     `json:"line"`
	Arms []int64 `json:"arms"` // the last one is for the else, also if the script has none
}

// serveTests runs the tests of the script on disk.
func (c *Component) serveTests(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if c.script.Tests == nil {
		http.Error(w, fmt.Sprintf("%s ships with weir, which does not contain its tests", c.script.Name), http.StatusNotFound)
		return
	}
	if !c.mem.testing.CompareAndSwap(false, true) {
		http.Error(w, fmt.Sprintf("the tests of %s run already; try again when they have ended", c.opts.ID), http.StatusConflict)
		return
	}
	defer c.mem.testing.Store(false)
	report, err := c.script.Tests(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	writeJSON(w, report)
}
