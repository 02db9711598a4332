package scripttest

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/scripting"
)

// Mutation tests change the code of scripts in small ways, one at a time, and run the
// tests that cover the line. A mutant that passes all tests survives: no test notices the
// change. Mutants exist in memory only.

// Mutants is the result of mutation tests.
type Mutants struct {
	Tested  int // within the time, without those that cannot be compiled
	Killed  int
	Ignored int // by weir:ignore
	// Survivors are in order of file and position.
	Survivors []Mutant
	Elapsed   time.Duration
	Left      int // for which the time was not enough
}

// Mutant is a change of a script that no test noticed.
type Mutant struct {
	File      string
	Line, Col int
	Source    string // the line
	Change    string
	Covered   bool // a test runs the line
}

// Score is the percentage of mutants that were killed, and 100 without mutants.
func (m *Mutants) Score() float64 { return Share{m.Killed, m.Tested}.Percent() }

// mutantFile is a file that is mutated.
type mutantFile struct {
	file    scripting.File
	lines   []LineCoverage
	covered map[int][]int // the indexes of the targets that run a statement, by its line
}

// statement returns the line in which the statement of a line begins.
func (f *mutantFile) statement(line int) int {
	i, found := slices.BinarySearchFunc(f.lines, line, func(l LineCoverage, line int) int { return cmp.Compare(l.Line, line) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return f.lines[i].Line
}

// mutation is a mutation of a file.
type mutation struct {
	scripting.Mutation
	of *mutantFile
}

// mutants runs mutation tests for o.Mutate altogether. All tests have passed.
func mutants(ctx context.Context, o Options, targets []target) (*Mutants, error) {
	m := &Mutants{}
	started := time.Now()
	files, err := covering(ctx, o, targets)
	if err != nil {
		return nil, err
	}
	var all []mutation
	for _, f := range files {
		l := languageOf(o.Languages, f.file.Path)
		if l == nil {
			continue
		}
		ignored, err := ignoredLines(f.file, l)
		if err != nil {
			return nil, err
		}
		for _, one := range l.Mutations(f.file) {
			if ignored[one.Line] {
				m.Ignored++
				continue
			}
			all = append(all, mutation{one, f})
		}
	}
	ctx, cancel := context.WithDeadline(ctx, started.Add(o.Mutate))
	defer cancel()
	var mu sync.Mutex // of m and next
	order, next := spread(len(all)), 0
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(order) {
			return 0, false
		}
		if ctx.Err() != nil {
			m.Left = len(order) - next
			return 0, false
		}
		next++
		return order[next-1], true
	}
	survived := map[int]Mutant{}
	var wg sync.WaitGroup
	for range cmp.Or(o.Parallel, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				one := all[i]
				covered := one.of.covered[one.of.statement(one.Line)]
				outcome := mutantSurvived
				if len(covered) > 0 {
					outcome = one.run(context.WithoutCancel(ctx), o, targets, covered)
				} else if !one.compiles(o, targets) {
					outcome = mutantInvalid
				}
				mu.Lock()
				switch outcome {
				case mutantKilled:
					m.Tested++
					m.Killed++
				case mutantSurvived:
					m.Tested++
					survived[i] = Mutant{one.of.file.Name, one.Line, one.Col, lineOf(one.of.file.Text, one.Line), one.Change, len(covered) > 0}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range all {
		if s, ok := survived[i]; ok {
			m.Survivors = append(m.Survivors, s)
		}
	}
	m.Elapsed = time.Since(started)
	return m, nil
}

// lineOf returns a line of a text, without blanks around it.
func lineOf(text string, line int) string {
	lines := strings.Split(text, "\n")
	return strings.TrimSpace(lines[line-1])
}

func languageOf(ls []scripting.Language, path string) scripting.Mutator {
	for _, l := range ls {
		for _, ext := range l.Extensions() {
			if m, ok := l.(scripting.Mutator); ok && strings.HasSuffix(path, ext) {
				return m
			}
		}
	}
	return nil
}

// covering runs the tests of each target alone, to see which lines they run, and returns
// the files that are scripts, or modules of scripts, in order of name.
func covering(ctx context.Context, o Options, targets []target) ([]*mutantFile, error) {
	tests := map[string]bool{}
	for _, t := range targets {
		tests[t.test.Path] = true
	}
	known := map[string]*mutantFile{}
	for i, t := range targets {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		probe := &scripting.Probe{Coverage: &scripting.Coverage{}}
		t, err := t.again(o, o.Languages, probe)
		if err != nil {
			return nil, err
		}
		t.fails(ctx)
		for _, c := range probe.Coverage.Files() {
			if tests[c.File.Path] {
				continue
			}
			f := known[c.File.Path]
			if f == nil {
				f = &mutantFile{file: c.File, lines: fileCoverage(c).Lines, covered: map[int][]int{}}
				known[c.File.Path] = f
			}
			for _, s := range c.Statements {
				if c.Hits(s.Counter) > 0 && !slices.Contains(f.covered[s.Line], i) {
					f.covered[s.Line] = append(f.covered[s.Line], i)
				}
			}
		}
	}
	var out []*mutantFile
	for _, f := range known {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *mutantFile) int { return strings.Compare(a.file.Name, b.file.Name) })
	return out, nil
}

// again returns the target in a suite of its own, with other languages, in which nothing
// is written and the first failure is the last.
func (t target) again(o Options, langs []scripting.Language, probe *scripting.Probe) (target, error) {
	o.Languages, o.Update, o.Write, o.Chaos = langs, nil, nil, false
	s, err := newSuite(o, t.suite.folder.Dir, probe)
	if err != nil {
		return t, err
	}
	s.failFast = true
	t.suite = s
	t.lang, _, _ = s.parts(t.script.Path)
	if l, _, _ := s.parts(t.test.Path); l != nil {
		t.testLang, _ = l.(scripting.Tester)
	}
	return t, nil
}

// fails runs the tests of a target and reports whether one fails.
func (t target) fails(ctx context.Context) bool {
	if f, _ := t.suite.testFile(ctx, t); f.Failing() {
		return true
	}
	f, _ := t.suite.script(ctx, t)
	return f.Failing()
}

// usable reports whether the script of a target compiles.
func (t target) usable() bool {
	r, ok := t.suite.folder.Catalog.Lookup(t.name)
	return t.script.Name == "" || !ok || r.Err == nil
}

// The outcomes of a mutant.
const (
	mutantSurvived = iota
	mutantKilled
	mutantInvalid
)

// run runs the tests of the targets that cover a mutant.
func (m mutation) run(ctx context.Context, o Options, targets []target, covered []int) int {
	for _, i := range covered {
		t, err := targets[i].again(o, m.languages(o.Languages), nil)
		if err != nil {
			return mutantInvalid
		}
		if !t.usable() {
			return mutantInvalid
		}
		if t.fails(ctx) {
			return mutantKilled
		}
	}
	return mutantSurvived
}

// compiles reports whether the component of a mutant's own file, if it is one, can be used.
func (m mutation) compiles(o Options, targets []target) bool {
	i := slices.IndexFunc(targets, func(t target) bool { return t.script.Path == m.of.file.Path })
	if i < 0 {
		return true
	}
	t, err := targets[i].again(o, m.languages(o.Languages), nil)
	return err == nil && t.usable()
}

// mutated is a language that compiles another text of one file.
type mutated struct {
	scripting.Tester
	path, text string
}

// languages returns the languages with the mutant in place of its file.
func (m mutation) languages(ls []scripting.Language) []scripting.Language {
	out := slices.Clone(ls)
	for i, l := range ls {
		if t, ok := l.(scripting.Tester); ok {
			out[i] = &mutated{t, m.of.file.Path, m.Apply(m.of.file.Text)}
		}
	}
	return out
}

func (l *mutated) replace(f scripting.File, err error) (scripting.File, error) {
	if f.Path == l.path {
		f.Text = l.text
	}
	return f, err
}

func (l *mutated) env(env scripting.Env) scripting.Env {
	require, load := env.Require, env.Import
	env.Require = func(name string) (scripting.File, error) { return l.replace(require(name)) }
	env.Import = func(from scripting.File, path string) (scripting.File, error) { return l.replace(load(from, path)) }
	return env
}

// Compile implements scripting.Language.
func (l *mutated) Compile(f scripting.File, env scripting.Env) (scripting.Program, error) {
	f, _ = l.replace(f, nil)
	return l.Tester.Compile(f, l.env(env))
}

// NewTest implements scripting.Tester.
func (l *mutated) NewTest(f scripting.File, env scripting.Env, api *scripting.TestAPI) (scripting.TestVM, error) {
	return l.Tester.NewTest(f, l.env(env), api)
}

// spread returns the numbers below n in an order in which each beginning is spread evenly.
func spread(n int) []int {
	if n == 0 {
		return nil
	}
	var out []int
	width := bits.Len(uint(n - 1))
	for i := range 1 << width {
		if j := int(bits.Reverse64(uint64(i)) >> (64 - width)); j < n {
			out = append(out, j)
		}
	}
	return out
}

// ignoredLines returns the lines whose mutants are not tested.
func ignoredLines(f scripting.File, l scripting.Mutator) (map[int]bool, error) {
	out := map[int]bool{}
	for _, c := range l.Ignores(f) {
		if c.ID != scripting.LintMutate {
			continue
		}
		if c.Reason == "" {
			return nil, f.Error(c.At, "", fmt.Errorf("weir:ignore mutate has no reason: write why no test can notice a change of the line"))
		}
		out[c.Line] = true
	}
	return out, nil
}

// Mutants writes the survivors and a summary.
func (p Pretty) Mutants(m *Mutants) {
	for _, s := range m.Survivors {
		why := ""
		if !s.Covered {
			why = ", and no test runs the line"
		}
		fmt.Fprintf(p.W, "%s:%d:%d: %s %s%s\n", p.clean(s.File), s.Line, s.Col, p.paint("33", "survived:"), p.clean(s.Change), why)
		fmt.Fprintf(p.W, "  %d | %s\n", s.Line, p.clean(s.Source))
	}
	line := fmt.Sprintf("%d of %s killed (%.1f%%)", m.Killed, count(m.Tested, "mutant"), m.Score())
	if m.Ignored > 0 {
		line += fmt.Sprintf(", %d ignored", m.Ignored)
	}
	fmt.Fprintf(p.W, "%s in %s\n", line, m.Elapsed.Round(time.Millisecond))
	if m.Left > 0 {
		fmt.Fprintf(p.W, "The time was not enough for %s; the tested ones are spread evenly. Test more with a longer --mutate=DURATION.\n", count(m.Left, "mutant"))
	}
}
