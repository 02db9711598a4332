package scripttest

import (
	"context"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/registry"
)

const (
	// maxReported is the maximum number of tests of a file in a report for a node.
	maxReported = 1000
	// maxReportText is the maximum size of the names, messages and outputs in such a report,
	// in bytes.
	maxReportText = 1 << 20
)

// OnRequest returns what registry.Options.Report takes: it runs the tests of a script
// with the limits of OnReload. A report of hostile tests has a limited size.
func OnRequest(langs []scripting.Language, modules []*scripting.Module, pipelines *Pipelines, limit time.Duration) func(context.Context, registry.Tested, *scripting.Probe) *node.TestReport {
	g := gate{langs, modules, pipelines, limit}
	return func(ctx context.Context, t registry.Tested, probe *scripting.Probe) *node.TestReport {
		started := time.Now()
		files, err := g.run(ctx, t, probe)
		r := &Report{Files: slices.DeleteFunc(files, func(f File) bool { return len(f.Tests) == 0 && f.Problem == nil })}
		out := &node.TestReport{
			Passed: r.Count(Passed), Failed: r.Count(Failed), Errors: r.Count(Broken), Pending: r.Count(Pending), Seconds: time.Since(started).Seconds(),
			Files: []node.TestFile{}, Coverage: []node.TestCoverage{{File: t.Script.Name, Text: t.Script.Text, Lines: []node.CoveredLine{}, Branches: []node.CoveredBranch{}}},
		}
		if err != nil {
			out.Stopped = err.Error() + ": make them faster or raise --scripts.test-limit"
		}
		left := maxReportText
		cut := func(text string) string {
			text = component.Shorten(text)
			if left -= len(text); left < 0 {
				return "…"
			}
			return text
		}
		for _, f := range r.Files {
			omitted := max(0, len(f.Tests)-maxReported)
			f.Tests = f.Tests[:len(f.Tests)-omitted]
			one := fileResult(f, cut)
			one.Omitted = omitted
			out.Files = append(out.Files, one)
		}
		for _, f := range probe.Coverage.Files() {
			switch f.File.Path {
			case t.Test.Path:
			case t.Script.Path:
				out.Coverage[0] = coverageResult(fileCoverage(f))
			default:
				out.Coverage = append(out.Coverage, coverageResult(fileCoverage(f)))
			}
		}
		return out
	}
}

// fileResult returns the tests of a file as they are in JSON. cut may shorten texts.
func fileResult(f File, cut func(string) string) node.TestFile {
	out := node.TestFile{File: f.Name, Seconds: f.Elapsed.Seconds(), Problem: problemResult(f.Problem, cut), Tests: []node.TestResult{}}
	for _, name := range f.Snapshots.Obsolete {
		out.Obsolete = append(out.Obsolete, cut(name))
	}
	for _, t := range f.Tests {
		one := node.TestResult{Name: cut(t.Name), Line: t.Line, Status: string(t.Status), Seconds: t.Elapsed.Seconds(), Problem: problemResult(t.Problem, cut)}
		for _, line := range t.Output {
			one.Output = append(one.Output, cut(line))
		}
		out.Tests = append(out.Tests, one)
	}
	return out
}

func problemResult(p *Problem, cut func(string) string) *node.TestProblem {
	if p == nil {
		return nil
	}
	return &node.TestProblem{File: p.File, Line: p.Line, Column: p.Col, Source: cut(p.Source), Message: cut(p.Msg), Diff: cut(p.Diff)}
}

func coverageResult(f FileCoverage) node.TestCoverage {
	out := node.TestCoverage{File: f.Name, Text: f.Text, Lines: []node.CoveredLine{}, Branches: []node.CoveredBranch{}}
	for _, l := range f.Lines {
		out.Lines = append(out.Lines, node.CoveredLine{Line: l.Line, Hits: l.Hits})
	}
	for _, b := range f.Branches {
		out.Branches = append(out.Branches, node.CoveredBranch{Line: b.Line, Arms: b.Arms})
	}
	return out
}
