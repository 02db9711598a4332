package scripttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/versions"
)

// DefaultLimit is how long a test may run in time of the script.
const DefaultLimit = 2 * time.Second

// Options are what a run of tests is made from.
type Options struct {
	Languages []scripting.Language
	// Modules is the standard library.
	Modules []*scripting.Module
	// Embedded are the scripts that ship with weir; nil: none.
	Embedded fs.FS
	// Edited are texts of scripts by the names of their components, instead of those of
	// the files.
	Edited map[string]string
	// Dir is the folder of scripts that Paths are in. Empty: for each of them
	// the folder called scripts that it is in, or what it is itself.
	Dir string
	// Paths are test files, scripts, and folders of them. Empty: Dir, which is
	// scripts when it is empty.
	Paths []string
	// Match chooses tests by their full name; nil: all.
	Match *regexp.Regexp
	// Limit is how long a test may run, and how long its file may take to
	// declare its tests, in time of the script; 0: DefaultLimit.
	Limit time.Duration
	// Parallel is how many files may run at once; 0: as many as there are CPUs.
	Parallel int
	// Update replaces the content of a file: outputs of examples that are others
	// are rewritten. nil: such examples fail.
	Update func(path, content string) error
	// Write creates or replaces a file of snapshots, or removes it if content is empty.
	// nil: no snapshot is written, and a missing one fails its test. With Update, snapshots
	// are also updated.
	Write func(path, content string) error
	// Coverage counts what the tests run of the scripts.
	Coverage bool
	// Bench measures the benches of test files when all tests have passed.
	Bench bool
	// BenchTime is how long each of them is measured; 0: DefaultBenchTime.
	BenchTime time.Duration
	// Fuzz is how long hostile batches are sent to all scripts together, when
	// all tests have passed; 0: not at all.
	Fuzz time.Duration
	// Mutate is how long mutation tests of all scripts may take together, when all tests
	// have passed; 0: there are none.
	Mutate time.Duration
	// Chaos runs test files that pass again, with faults that scripts must
	// survive.
	Chaos bool
	// Seed is what is drawn at random is drawn from.
	Seed uint64
	// Skip leaves out scripts and test files by the name that reports have;
	// nil: none.
	Skip func(name string) bool
	// Checks are for Check; Run leaves them out.
	Checks *registry.Checks
	// Pipelines is for weir.test.pipeline; nil: tests cannot use it.
	Pipelines *Pipelines
	// Versions tells Check which scripts failed their tests where they run; nil:
	// nothing does. Run leaves it out.
	Versions *versions.Store
	// test is what registry.Options.Test takes, of Check.
	test func(context.Context, registry.Tested) error
	// Each is told of every file when it is done, in order; nil: nobody.
	Each func(File)
}

// Status is how a test ended.
type Status string

// The ways a test ends. Failed is an assertion that does not hold, Broken any
// other error.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Broken  Status = "error"
	Pending Status = "pending"
)

// Report is what a run found.
type Report struct {
	Files    []File
	Coverage *Coverage // nil: not asked for
	Mutants  *Mutants  // nil: not asked for
	// Orphans are files of snapshots whose test file is gone; with Options.Update they
	// were removed.
	Orphans []string
	// Benchmarks are in order of their files.
	Benchmarks []Benchmark

	opened  []opened
	Elapsed time.Duration
}

// File is what became of a script's examples, or of a test file.
type File struct {
	Name  string // as shown to people
	Tests []Test
	// Problem says why the file could not be used; nil when it could.
	Problem *Problem
	// Updated is how many of its examples were rewritten.
	Updated int
	// Snapshots is what became of its snapshots.
	Snapshots Snapshots
	// Sources are the absolute paths of the files it depends on, sorted.
	Sources []string
	benches bool     // it has some
	opened  []opened // by its tests
	Elapsed time.Duration
}

// Test is what became of one test.
type Test struct {
	Name         string // with those of the groups around it
	Line         int
	Status       Status
	Problem      *Problem // of one that failed; of a pending one, why, where it says
	Output       []string // what the test and the script printed
	scriptFailed bool
	Elapsed      time.Duration
}

// Problem is what went wrong, and where.
type Problem struct {
	File      string
	Line, Col int    // 0: not known
	Source    string // the source line
	Msg       string // may have several lines
	Diff      string // lines with "- " are wanted, with "+ " are there
}

// Count returns how many tests ended in a status; a file that could not be
// used counts as one Broken.
func (r *Report) Count(s Status) int {
	n := 0
	for _, f := range r.Files {
		if f.Problem != nil && s == Broken {
			n++
		}
		for _, t := range f.Tests {
			if t.Status == s {
				n++
			}
		}
	}
	return n
}

// OK reports whether nothing failed.
func (r *Report) OK() bool { return r.Count(Failed)+r.Count(Broken) == 0 }

// ErrNoTests is returned when there is nothing to run.
var ErrNoTests = errors.New("there are no tests")

// Run runs the tests. The error says why there was nothing to run; that tests
// failed is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	targets, err := find(o)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	r := &Report{}
	found := false
	var wg sync.WaitGroup
	for _, done := range runAll(ctx, &wg, o, targets) {
		for res := range done {
			found = found || res.any
			r.opened = append(r.opened, res.file.opened...)
			if len(res.file.Tests) == 0 && res.file.Problem == nil && !(o.Bench && res.file.benches) {
				continue
			}
			r.Files = append(r.Files, res.file)
			if o.Each != nil {
				o.Each(res.file)
			}
		}
	}
	wg.Wait()
	r.Elapsed = time.Since(started)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r.Elapsed = time.Since(started)
	for _, path := range orphans(targets) {
		r.Orphans = append(r.Orphans, display(path))
		if o.Update == nil || o.Write == nil {
			continue
		}
		if err := o.Write(path, ""); err != nil {
			return r, fmt.Errorf("cannot remove the snapshots %s: %w", display(path), err)
		}
	}
	if o.Fuzz > 0 && r.OK() {
		fuzz(ctx, o, targets, r, func(f File) {
			if o.Each != nil {
				o.Each(f)
			}
		})
		if r.Elapsed = time.Since(started); ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	if o.Mutate > 0 && r.OK() {
		if r.Mutants, err = mutants(ctx, o, targets); err != nil {
			return r, err
		}
	}
	if o.Bench && r.OK() {
		if err := benchmarks(ctx, o, targets, r); err != nil {
			return r, err
		}
	}
	if o.Coverage {
		r.Coverage = coverageOf(targets)
	}
	switch {
	case len(r.Files) > 0 || found && o.Skip != nil:
		return r, nil
	case found:
		return nil, fmt.Errorf("%w whose names match %s", ErrNoTests, o.Match)
	}
	return nil, fmt.Errorf("%w in %s: add x_test.lua next to x.lua, or examples in the comment at the top of a script", ErrNoTests, places(o))
}

// result is what became of a file; any reports whether it has tests.
type result struct {
	file File
	any  bool
}

// runAll runs targets side by side and returns, for each of them in order, a
// channel with its results, which may be left unread. wg waits for the workers.
func runAll(ctx context.Context, wg *sync.WaitGroup, o Options, targets []target) []chan result {
	out := make([]chan result, len(targets))
	next := make(chan int, len(targets))
	for i := range targets {
		out[i] = make(chan result, 2) // a script and its test file
		next <- i
	}
	close(next)
	for range min(cmp.Or(o.Parallel, runtime.GOMAXPROCS(0)), len(targets)) {
		wg.Go(func() {
			for i := range next {
				targets[i].run(ctx, o.Skip, out[i])
			}
		})
	}
	return out
}

// run runs a script's examples and its test file.
func (t target) run(ctx context.Context, skip func(string) bool, out chan<- result) {
	defer close(out)
	for _, part := range []struct {
		name string
		run  func(context.Context, target) (File, bool)
	}{{t.script.Name, t.suite.script}, {t.test.Name, t.suite.testFile}} {
		if ctx.Err() != nil || part.name == "" {
			continue
		}
		if skip != nil && skip(part.name) {
			out <- result{any: true}
			continue
		}
		f, found := guarded(part.name, func() (File, bool) { return part.run(ctx, t) })
		out <- result{f, found}
	}
}

// guarded runs the tests of a file. A Go panic is a problem of the file: tests also run in a
// process that collects data.
func guarded(name string, run func() (File, bool)) (f File, found bool) {
	defer func() {
		if v := recover(); v != nil {
			err := fmt.Errorf("BUG: the tests panicked: %v\n%s", v, debug.Stack())
			f, found = File{Name: name, Problem: problemOf(err, name)}, true
		}
	}()
	return run()
}

// suite is what all tests of one folder share.
type suite struct {
	folder    registry.Folder
	langs     []scripting.Language
	modules   []*scripting.Module
	pipelines *Pipelines
	match     *regexp.Regexp
	limit     time.Duration
	left      *time.Duration                   // script time that all tests may still take; nil: no limit
	update    func(path, content string) error // nil: nothing is rewritten
	write     func(path, content string) error // of snapshots; nil: none is written
	probe     *scripting.Probe
	chaos     bool
	// failFast ends a file after its first failure.
	failFast bool
	seed     uint64
}

// took takes what a call into a test file took from what is left.
func (s *suite) took(used time.Duration) {
	if s.left != nil {
		*s.left -= used
	}
}

// spent reports whether nothing is left for more tests.
func (s *suite) spent() bool { return s.left != nil && *s.left < 0 }

// wanted reports whether a test is chosen.
func (s *suite) wanted(name string) bool { return s.match == nil || s.match.MatchString(name) }

// testFile runs a test file. found reports whether it has tests, chosen or not.
func (s *suite) testFile(ctx context.Context, t target) (f File, found bool) {
	if t.test.Name == "" {
		return File{}, false
	}
	f.Name, f.Sources = t.test.Name, []string{t.test.Path}
	started := time.Now()
	defer func() { f.Elapsed = time.Since(started) }()
	if t.err != nil {
		f.Problem = problemOf(t.err, t.test.Name)
		return f, true
	}
	lang := t.testLang
	snaps, err := s.openSnapshots(t.test)
	if err != nil {
		f.Problem = problemOf(err, t.test.Name)
		return f, true
	}
	ses, err := newSession(ctx, *s, t.test, lang)
	if err != nil {
		f.Problem = problemOf(err, t.test.Name)
		return f, true
	}
	ses.snaps = snaps
	defer func() {
		if err := ses.close(); err != nil && f.Problem == nil {
			f.Problem = problemOf(err, t.test.Name)
		}
	}()
	defer func() { f.Sources = sortedSources(ses.used) }()
	f.benches = len(ses.benches) > 0
	defer func() { f.opened = ses.known }()
	found = len(ses.all)+len(ses.benches) > 0
	ses.plan(0, s.wanted)
	for i := range ses.all {
		c := ses.all[i]
		if !s.wanted(c.fullName()) {
			continue
		}
		if ctx.Err() != nil || s.spent() {
			return f, found
		}
		f.Tests = append(f.Tests, s.test(ses, c))
		if s.failFast && f.Failing() {
			return f, found
		}
		if !ses.vm.Broken() {
			continue
		}
		// A limit stopped the VM: the tests after this one get a new one, in
		// which the file declares the same tests.
		err := ses.close()
		var next *session
		if err == nil {
			next, err = newSession(ctx, *s, t.test, lang)
		}
		if err != nil || len(next.all) != len(ses.all) {
			if err == nil {
				err = errors.Join(errors.New("cannot go on after a test was stopped: the file declared other tests this time"), next.close())
			}
			f.Problem = problemOf(err, t.test.Name)
			return f, found
		}
		next.snaps = snaps
		ses = next
		ses.plan(i+1, s.wanted)
	}
	if err := snaps.finish(&f, ses.all); err != nil {
		f.Problem = problemOf(err, t.test.Name)
		return f, found
	}
	return s.faults(ctx, t, lang, f, ses.mocks.used, snaps), found
}

// faults runs a file's tests again with faults, when all of them passed.
func (s *suite) faults(ctx context.Context, t target, lang scripting.Tester, f File, outside bool, snaps *snapshots) File {
	if !s.chaos || f.Failing() {
		return f
	}
	tests, err := s.survive(ctx, t, lang, f.Tests, outside, snaps)
	if f.Tests = tests; err != nil && f.Problem == nil {
		f.Problem = problemOf(fmt.Errorf("%w\nwith --chaos %d", err, s.seed), t.test.Name)
	}
	return f
}

// Failing reports whether a test of the file failed, or it could not be used.
func (f File) Failing() bool {
	return f.Problem != nil || slices.ContainsFunc(f.Tests, func(t Test) bool { return t.Status == Failed || t.Status == Broken })
}

// test runs one test with what belongs around it.
func (s *suite) test(ses *session, c *testCase) Test {
	t := Test{Name: c.fullName(), Line: c.line, Status: Passed}
	if c.fn == nil {
		t.Status = Pending
		return t
	}
	ses.foralls, ses.scriptFailed = 0, false
	ses.running, ses.test, ses.output = true, t.Name, testOutput{}
	started := time.Now()
	before, after := c.callbacks()
	err := s.runBefore(ses, c.in)
	ses.inTest = true
	if err == nil {
		err = s.calls(ses, append(before, c.fn))
	} else {
		after = nil
	}
	for _, fn := range after {
		if ses.vm.Broken() {
			break
		}
		late := ses.vm.Call(fn, s.limit)
		s.took(ses.vm.Used())
		if err == nil {
			err = late
		}
	}
	ses.inTest = false
	if late := s.runAfter(ses, c.in); err == nil {
		err = late
	}
	t.Elapsed = time.Since(started)
	ses.running, ses.test = false, ""
	t.Output = ses.output.shown()
	for _, p := range append(ses.filePipelines, ses.openedPipelines...) {
		t.Output = append(t.Output, p.log.takeOutput().shown()...)
	}
	for _, n := range append(ses.nodes, ses.opened...) {
		for _, line := range n.log.takeOutput().shown() {
			t.Output = append(t.Output, n.name+": "+line)
		}
	}
	if late := ses.closeOpened(); err == nil {
		err = late
	}
	ses.mocks.endTest()
	if late := ses.vm.EndTest(); err == nil {
		err = late
	}
	if err == nil {
		return t
	}
	t.Problem = problemOf(err, ses.file.Name)
	if t.Problem.Line == 0 && t.Problem.File == ses.file.Name {
		t.Problem.Line = c.line
	}
	t.Status = Broken
	t.scriptFailed = ses.scriptFailed || scriptFailed(err)
	if _, ok := errors.AsType[*Failure](err); ok {
		t.Status = Failed
	}
	if p, ok := errors.AsType[*pendingError](err); ok {
		t.Status, t.Problem.Msg = Pending, p.why
	}
	return t
}

// problemOf says what an error is and where.
func problemOf(err error, file string) *Problem {
	p := &Problem{File: file, Msg: err.Error()}
	e, ok := errors.AsType[*scripting.Error](err)
	if ok {
		p.File, p.Line, p.Col, p.Source = e.File, e.Line, e.Col, e.Source
		p.Msg = e.Err.Error()
		if e.Hook != "" && e.Hook != "load" {
			p.Msg = "in " + e.Hook + ": " + p.Msg
		}
		if e.Record != "" {
			p.Msg += "\nrecord: " + e.Record
		}
		if e.Hint != "" {
			p.Msg += "\nhint: " + e.Hint
		}
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		p.Msg, p.Diff = f.Msg, f.Diff
	}
	if d, placed := errors.AsType[config.Diagnostic](err); placed && !ok {
		p.File, p.Line = d.File, d.Line // the columns are of the text without comment marks
		d.Span = config.Span{}
		p.Msg = d.Error()
	}
	if many, several := err.(interface{ Unwrap() []error }); several {
		for _, other := range many.Unwrap()[1:] {
			p.Msg += "\n" + other.Error()
		}
	}
	return p
}
