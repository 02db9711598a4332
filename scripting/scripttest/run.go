package scripttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
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
	// Each is told of every file when it is done; nil: nobody.
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
	Files   []File
	Elapsed time.Duration
}

// File is what became of a script's examples, or of a test file.
type File struct {
	Name  string // as shown to people
	Tests []Test
	// Problem says why the file could not be used; nil when it could.
	Problem *Problem
	Elapsed time.Duration
}

// Test is what became of one test.
type Test struct {
	Name    string // with those of the groups around it
	Line    int
	Status  Status
	Problem *Problem // of one that failed; of a pending one, why, where it says
	Output  []string // what the test and the script printed
	Elapsed time.Duration
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
	for _, t := range targets {
		for _, run := range []func() (File, bool){
			func() (File, bool) { return t.suite.script(ctx, t) },
			func() (File, bool) { return t.suite.testFile(ctx, t) },
		} {
			if ctx.Err() != nil {
				return r, context.Cause(ctx)
			}
			f, any := run()
			found = found || any
			if len(f.Tests) == 0 && f.Problem == nil {
				continue
			}
			r.Files = append(r.Files, f)
			if o.Each != nil {
				o.Each(f)
			}
		}
	}
	r.Elapsed = time.Since(started)
	switch {
	case len(r.Files) > 0:
		return r, nil
	case found:
		return nil, fmt.Errorf("%w whose names match %s", ErrNoTests, o.Match)
	}
	return nil, fmt.Errorf("%w in %s: put x_test.lua beside x.lua, or examples into the comment at the top of a script", ErrNoTests, places(o))
}

// suite is what all tests of one folder share.
type suite struct {
	folder  scripting.Folder
	langs   []scripting.Language
	modules []*scripting.Module
	match   *regexp.Regexp
	limit   time.Duration
}

// wanted reports whether a test is chosen.
func (s *suite) wanted(name string) bool { return s.match == nil || s.match.MatchString(name) }

// testFile runs a test file. any reports whether it has tests, chosen or not.
func (s *suite) testFile(ctx context.Context, t target) (f File, any bool) {
	if t.test.Name == "" {
		return File{}, false
	}
	f.Name = t.test.Name
	started := time.Now()
	defer func() { f.Elapsed = time.Since(started) }()
	if t.err != nil {
		f.Problem = problemOf(t.err, t.test.Name)
		return f, true
	}
	lang := t.lang.(scripting.Tester)
	ses, err := newSession(ctx, *s, t.test, lang)
	if err != nil {
		f.Problem = problemOf(err, t.test.Name)
		return f, true
	}
	defer func() { ses.close() }()
	any = len(ses.all) > 0
	for i := range ses.all {
		c := ses.all[i]
		if !s.wanted(c.fullName()) {
			continue
		}
		if ctx.Err() != nil {
			return f, any
		}
		f.Tests = append(f.Tests, s.test(ses, c))
		if !ses.vm.Broken() {
			continue
		}
		// A limit stopped the VM: the tests after this one get a new one, in
		// which the file declares the same tests.
		ses.close()
		next, err := newSession(ctx, *s, t.test, lang)
		if err != nil || len(next.all) != len(ses.all) {
			if err == nil {
				next.close()
				err = errors.New("cannot go on after a test was stopped: the file declared other tests this time")
			}
			f.Problem = problemOf(err, t.test.Name)
			return f, any
		}
		ses = next
	}
	return f, any
}

// test runs one test with what belongs around it.
func (s *suite) test(ses *session, c *testCase) Test {
	t := Test{Name: c.fullName(), Line: c.line, Status: Passed}
	if c.fn == nil {
		t.Status = Pending
		return t
	}
	ses.inTest, ses.output = true, nil
	started := time.Now()
	before, after := c.around()
	var err error
	for _, fn := range append(before, c.fn) {
		if err = ses.vm.Call(fn, s.limit); err != nil {
			break
		}
	}
	for _, fn := range after {
		if ses.vm.Broken() {
			break
		}
		if late := ses.vm.Call(fn, s.limit); err == nil {
			err = late
		}
	}
	t.Elapsed = time.Since(started)
	ses.inTest = false
	t.Output = ses.output
	for _, n := range append(ses.nodes, ses.opened...) {
		for _, line := range n.log.take() {
			t.Output = append(t.Output, n.name+": "+line)
		}
	}
	ses.closeOpened()
	if err == nil {
		return t
	}
	t.Problem = problemOf(err, ses.file.Name)
	t.Status = Broken
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
