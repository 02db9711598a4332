package scripttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// script checks a script and runs the examples in its header. found reports
// whether it has examples, chosen or not.
func (s *suite) script(ctx context.Context, t target) (f File, found bool) {
	if t.script.Name == "" {
		return File{}, false
	}
	f.Name = t.script.Name
	started := time.Now()
	defer func() { f.Elapsed = time.Since(started) }()
	if r, ok := s.folder.Catalog.Lookup(t.name); !ok {
		return File{}, false
	} else if f.Sources = r.Sources; r.Err != nil && !strings.Contains(t.name, ".") {
		f.Problem = &Problem{File: f.Name, Msg: fmt.Sprintf("cannot make a component of %s: it is not in a folder of %s; if that is not the folder of scripts, name it with --scripts", f.Name, display(s.folder.Dir))}
		return f, true
	} else if r.Err != nil {
		f.Problem = problemOf(r.Err, f.Name)
		return f, true
	}
	var updates []rewrite
	examples := scripting.ParseHeader(t.lang.Comment(t.script.Text)).Examples
	for _, e := range examples {
		name := fmt.Sprintf("%s example in line %d", t.name, e.Line)
		if !s.wanted(name) {
			continue
		}
		test := Test{Name: name, Line: e.Line, Status: Passed}
		began := time.Now()
		got, err := s.example(ctx, t, e)
		if _, failed := errors.AsType[*Failure](err); failed && s.update != nil {
			updates = append(updates, rewrite{e, got})
			err = nil
		}
		test.Elapsed = time.Since(began)
		if err != nil {
			test.Status = Broken
			if _, ok := errors.AsType[*Failure](err); ok {
				test.Status = Failed
			}
			test.Problem = problemOf(err, f.Name)
			if test.Problem.Line == 0 {
				test.Problem.Line = e.Line
			}
		}
		f.Tests = append(f.Tests, test)
	}
	if len(updates) > 0 {
		if err := s.rewrite(t.script, updates); err != nil {
			f.Problem = problemOf(err, f.Name)
			return f, true
		}
		f.Updated = len(updates)
	}
	return f, len(examples) > 0
}

// example runs one example of a header. Metadata in the example must match;
// metadata that it omits may be anything. got is the expected output if the
// error is a Failure.
func (s *suite) example(ctx context.Context, t target, e scripting.Example) (got string, err error) {
	if e.InputLine == 0 || e.OutputLine == 0 {
		return "", errors.New(`cannot run this example: it needs both "Example Input:" and "Example Output:"`)
	}
	n, err := newNode(ctx, new(mocks).catalog(s.folder.Catalog, true), t.name, e.Args, config.Span{File: t.script.Name, Line: e.ArgsLine})
	if err != nil {
		return "", err
	}
	defer n.stop()
	in, err := n.read(e.Input)
	if err != nil {
		return "", inExample(t, err, e.InputLine, n.accepts)
	}
	want, err := n.want(e.Output)
	if err != nil {
		return "", inExample(t, err, e.OutputLine, n.sends)
	}
	out, err := n.sendAny(ctx, in)
	if err != nil {
		return "", err
	}
	if len(out.errors) > 0 {
		return "", out.errors[0]
	}
	if diff := out.difference(want, false); diff != "" {
		return out.textLike(e.Output), t.script.Error(e.OutputLine, "", &Failure{Msg: fmt.Sprintf("the example gives other %s", n.sends), Diff: diff})
	}
	return "", nil
}

// inExample places a mistake in an example's text.
func inExample(t target, err error, first int, of batch.Signals) error {
	e, ok := errors.AsType[*batch.SyntaxError](err)
	if !ok {
		return err
	}
	return t.script.Error(first+e.Line-1, "", fmt.Errorf("cannot read the %s of this example: %s", of, e.Msg))
}
