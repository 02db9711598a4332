package scripting

import (
	"fmt"
	"strings"
)

// The identifiers of findings. docs/lint.md describes them.
const (
	LintUnknownMember  = "unknown-member"
	LintUnknownGlobal  = "unknown-global"
	LintUnknownKey     = "unknown-key"
	LintUnknownOutput  = "unknown-output"
	LintWrongArgument  = "wrong-argument"
	LintMissingColon   = "missing-colon"
	LintNotFunction    = "not-a-function"
	LintWrongLoop      = "wrong-loop"
	LintReadOnly       = "read-only"
	LintMissingNeed    = "missing-need"
	LintSeriesHook     = "series-hook"
	LintGlobalWrite    = "global-write"
	LintPerRecord      = "per-record"
	LintUnboundedCache = "unbounded-cache"
	LintSlowPattern    = "slow-pattern"
	LintUnusedNeed     = "unused-need"
	LintMissingTest    = "missing-test"
	LintBadIgnore      = "bad-ignore"
)

// LintMutate is the identifier of mutants in comments weir:ignore.
const LintMutate = "mutate"

// LintIDs are the identifiers that a comment weir:ignore may have in addition to
// LintMutate. It is not changed.
var LintIDs = []string{
	LintUnknownMember, LintUnknownGlobal, LintUnknownKey, LintUnknownOutput, LintWrongArgument, LintMissingColon,
	LintNotFunction, LintWrongLoop, LintReadOnly, LintMissingNeed, LintGlobalWrite, LintSeriesHook, LintPerRecord,
	LintUnboundedCache, LintSlowPattern, LintUnusedNeed, LintMissingTest,
}

// Finding is a linter's finding in a line, without running it.
type Finding struct {
	Err *Error
	// Warning means that it may not be an error. Otherwise, the line fails
	// whenever it runs.
	Warning bool
}

// Advice returns the text that a finding adds to an error in its line. raw
// means that the error is the language's own, which has no hints about weir.
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

// Linted is a Program with a linter.
type Linted interface {
	Program
	// Lint returns findings in the files of the program.
	Lint() []Finding
}

// TestLinter is a Tester with a linter for test files.
type TestLinter interface {
	Tester
	// LintTest compiles a test file and returns findings in it. The error joins an
	// *Error for every compile error.
	LintTest(f File, env Env, api *TestAPI) ([]Finding, error)
}

// UnusedNeeds returns warnings about needs of a definition in main that no file uses.
// A name that occurs anywhere else in the code counts as a use.
func UnusedNeeds(d *Definition, main File, all []File, tokens func(string) []Token) (out []Finding) {
	if d == nil || d.Needs.None() {
		return nil
	}
	uses, keys := map[string]int{}, map[string]Token{}
	for _, f := range all {
		ts := tokens(f.Text)
		for i, t := range ts {
			name := t.Text
			if t.Kind == TokenString {
				name = strings.Trim(name, "\"'")
			}
			uses[name]++
			if f.Name == main.Name && i+1 < len(ts) && (ts[i+1].Text == "=" || ts[i+1].Text == ":") {
				keys[name] = t
			}
		}
	}
	n := d.Needs
	declared := map[string]bool{"http": n.HTTP, "env": len(n.Env) > 0, "read": n.Read, "exec": n.Exec}
	for _, kind := range NeedKinds {
		key, ok := keys[kind]
		if !ok || !declared[kind] || uses[kind] > 1 {
			continue
		}
		e := main.Error(key.Line, HookLoad, fmt.Errorf("needs.%s is declared, but the script does not use ctx.%s", kind, kind))
		e.ID, e.Col, e.Hint = LintUnusedNeed, key.At-strings.LastIndexByte(main.Text[:key.At], '\n'), "remove it from needs, and from the block allow of the config"
		out = append(out, Finding{Err: e, Warning: true})
	}
	return out
}

// Accepts returns why a constant is not a valid argument, or "" if it is.
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
