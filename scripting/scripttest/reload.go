package scripttest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
)

// DefaultReloadLimit is how long all tests of a script may take together when it starts
// or is saved, in time of the script.
const DefaultReloadLimit = 2 * time.Second

// maxReason is how many lines of a difference a node's health shows.
const maxReason = 20

// OnReload returns what registry.Options.Test takes: it runs the test file
// and the examples of a script, and its error names what failed.
//
// All tests of a script together may take limit, and one of them a quarter of it, in time
// of the script. They may take fifteen times as long by the clock: a save is not refused
// because the machine is busy. The tests also end with their context. Its cause is then a
// part of the error.
func OnReload(langs []scripting.Language, modules []*scripting.Module, pipelines *Pipelines, limit time.Duration) func(context.Context, registry.Tested) error {
	g := gate{langs, modules, pipelines, limit}
	return func(ctx context.Context, t registry.Tested) error {
		files, err := g.run(ctx, t, nil)
		if err != nil {
			return fmt.Errorf(`cannot test %s: %w; make them faster, raise --scripts.test-limit, or write script { on_reload = "swap" }`, t.Script.Name, err)
		}
		return firstProblem(files...)
	}
}

// gate runs the tests of one script in a running weir.
type gate struct {
	langs     []scripting.Language
	modules   []*scripting.Module
	pipelines *Pipelines
	limit     time.Duration
}

// run runs the examples and the test file of a script. The error is why not all tests
// ran. probe may be nil.
func (g gate) run(ctx context.Context, t registry.Tested, probe *scripting.Probe) ([]File, error) {
	left := g.limit
	s := &suite{folder: t.Folder, langs: g.langs, modules: g.modules, pipelines: g.pipelines, limit: g.limit / 4, left: &left, probe: probe}
	target := target{suite: s, script: t.Script, test: t.Test}
	l, base, _ := s.parts(t.Script.Path)
	target.lang, target.name = l, s.component(base)
	if l, _, _ := s.parts(t.Test.Path); l != nil {
		target.testLang = l.(scripting.Tester) // of others no test file is looked for
	}
	if ns := t.Folder.Namespace; ns != "" {
		target.name = ns + "." + target.name
	}
	wall := 15 * g.limit
	ctx, cancel := context.WithTimeoutCause(ctx, wall, fmt.Errorf("the tests took longer than %s", wall))
	defer cancel()
	examples, _ := s.script(ctx, target)
	tests, _ := s.testFile(ctx, target)
	err := context.Cause(ctx)
	if s.spent() {
		err = fmt.Errorf("the tests took longer than %s of script time", g.limit)
	}
	return []File{examples, tests}, err
}

// firstProblem is an error about the first test that failed.
func firstProblem(files ...File) error {
	failed, total := 0, 0
	var first *Problem
	name := ""
	for _, f := range files {
		if f.Problem != nil && first == nil {
			first, name = f.Problem, "the file cannot be used"
		}
		for _, t := range f.Tests {
			total++
			if t.Status != Failed && t.Status != Broken {
				continue
			}
			failed++
			if first == nil {
				first, name = t.Problem, fmt.Sprintf("test %q failed", t.Name)
			}
		}
	}
	if first == nil {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s", first.pos(), name, first.Msg)
	diff := splitLines(first.Diff)
	if len(diff) > maxReason {
		diff = append(diff[:maxReason:maxReason], "  … and more")
	}
	for _, l := range diff {
		b.WriteString("\n" + l)
	}
	if failed > 1 {
		fmt.Fprintf(&b, "\n%d of %d tests failed", failed, total)
	}
	return fmt.Errorf("%s", b.String())
}
