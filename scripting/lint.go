package scripting

import (
	"strings"
)

// Finding is what a linter says of a line that was not run.
type Finding struct {
	Err *Error
	// Warning says that it need not be a mistake; else it fails whenever it runs.
	Warning bool
}

// Advice returns what a finding adds to an error in its line. raw says that the
// error is the language's own, which knows nothing of weir.
func (f Finding) Advice(err error, raw bool) string {
	switch msg := f.Err.Err.Error(); {
	case strings.Contains(err.Error(), msg) || f.Err.Hint != "" && !raw:
		return f.Err.Hint
	case f.Err.Hint != "":
		return msg + ": " + f.Err.Hint
	case raw:
		return msg
	}
	return ""
}

// Linted is a Program that knows what would go wrong in it.
type Linted interface {
	Program
	// Lint returns findings in the files that the program is made of.
	Lint() []Finding
}

// TestLinter is a Tester that knows what would go wrong in a test file.
type TestLinter interface {
	Tester
	// LintTest compiles a test file and returns findings in it. The error joins
	// an *Error for every mistake that keeps it from being compiled.
	LintTest(f File, env Env, api *TestAPI) ([]Finding, error)
}

// Accepts returns why a constant cannot be passed; "" when it can.
func (p *Param) Accepts(v Value) string {
	if _, msg := p.Convert(v); msg != "" {
		return msg
	}
	if s, ok := v.(string); ok && p.Check != nil {
		if err := p.Check(s); err != nil {
			return "is wrong: " + err.Error()
		}
	}
	return ""
}
