package scripttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// DefaultBenchTime is how long a benchmark is measured.
const DefaultBenchTime = 200 * time.Millisecond

// Benchmark is what one bench of a test file measured, per record; of a
// function, per call.
type Benchmark struct {
	File    string
	Name    string // with those of the groups around it
	Line    int
	Records int // of the batch; 0: it is about a function
	Nanos   float64
	Allocs  float64
	// Instructions of the scripts are the same on every machine. First is those
	// of the first batch, all of whose series are new.
	Instructions, First float64
	// Baseline is what it was; nil: not known.
	Baseline *Measured
	Problem  *Problem // why there are no figures
}

// benchCase is a bench.
type benchCase struct {
	testCase
	node *testNode       // nil: it is about the function fn
	text scripting.Value // of the batch, or a Callback that makes it
}

// declareBench is bench.
func (s *session) declareBench(a []scripting.Value) error {
	if s.running {
		return errors.New("cannot use bench inside it: move it out of the test")
	}
	_, line := s.vm.Pos()
	b := &benchCase{testCase: testCase{in: s.at, name: a[0].(string), line: line}, text: a[2]}
	switch what := a[1].(type) {
	case scripting.Callback:
		b.fn = what
		if a[2] != nil {
			return errors.New("cannot use bench with a function and a batch: the function is all that is measured")
		}
	case *scripting.Object:
		n, ok := what.Data.(*testNode)
		if !ok {
			return fmt.Errorf("cannot measure a %s: bench takes a component and a batch, or a function", typeName(a[1]))
		}
		b.node = n
		switch a[2].(type) {
		case string, scripting.Callback:
		default:
			return errors.New("cannot measure a component without a batch: write bench(name, component, text), or a function that returns the text")
		}
	default:
		return fmt.Errorf("cannot measure a %s: bench takes a component and a batch, or a function", typeName(a[1]))
	}
	s.benches = append(s.benches, b)
	return nil
}

// benchmarks measures the benches of the targets' test files, one after the
// other: nothing else may run meanwhile.
func benchmarks(ctx context.Context, o Options, targets []target, r *Report) error {
	counting := map[*suite]*suite{}
	for _, t := range targets {
		i := slices.IndexFunc(r.Files, func(f File) bool { return f.Name == t.test.Name && f.benches })
		if i < 0 {
			continue
		}
		if counting[t.suite] == nil {
			s, err := newSuite(o, t.suite.folder.Dir, &scripting.Probe{Statements: true})
			if err != nil {
				return err
			}
			counting[t.suite] = s
		}
		if err := t.benchmarks(ctx, o, counting[t.suite], r); err != nil {
			return err
		}
	}
	return nil
}

// benchmarks runs the benchmarks of a test file. Counting makes some languages
// slower, so time is measured without it.
func (t target) benchmarks(ctx context.Context, o Options, counting *suite, r *Report) (err error) {
	ses, err := newSession(ctx, *t.suite, t.test, t.testLang)
	if err != nil {
		return err // its tests ran: it is not the file
	}
	defer func() { err = errors.Join(err, ses.close()) }()
	counted, err := newSession(ctx, *counting, t.test, t.testLang)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, counted.close()) }()
	for i, b := range ses.benches {
		if !t.suite.wanted(b.fullName()) || i >= len(counted.benches) {
			continue
		}
		out := Benchmark{File: t.test.Name, Name: b.fullName(), Line: b.line}
		err := counting.count(ctx, counted, counted.benches[i], &out)
		if err == nil {
			err = t.suite.bench(ctx, ses, b, cmp.Or(o.BenchTime, DefaultBenchTime), &out)
		}
		if err != nil {
			if out.Problem = problemOf(err, t.test.Name); out.Problem.Line == 0 {
				out.Problem.Line = b.line
			}
		}
		r.Benchmarks = append(r.Benchmarks, out)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if ses.vm.Broken() || counted.vm.Broken() {
			break
		}
	}
	return nil
}

// count counts what one runs, at first and then.
func (s *suite) count(ctx context.Context, ses *session, b *benchCase, out *Benchmark) error {
	once, per, stop, err := s.prepare(ctx, ses, b)
	if err != nil {
		return err
	}
	defer stop()
	first := s.probe.Instructions()
	if err := once(); err != nil {
		return err
	}
	steady := s.probe.Instructions()
	if err := once(); err != nil {
		return err
	}
	out.First = float64(steady-first) / float64(per)
	out.Instructions = float64(s.probe.Instructions()-steady) / float64(per)
	return nil
}

// bench measures the time of one.
func (s *suite) bench(ctx context.Context, ses *session, b *benchCase, long time.Duration, out *Benchmark) error {
	once, per, stop, err := s.prepare(ctx, ses, b)
	if err != nil {
		return err
	}
	defer stop()
	if b.node != nil {
		out.Records = per
	}
	for range 2 { // all series are known then
		if err := once(); err != nil {
			return err
		}
	}
	took, allocs, calls, err := repeat(long, once)
	out.Nanos = float64(took.Nanoseconds()) / float64(calls) / float64(per)
	out.Allocs = float64(allocs) / float64(calls) / float64(per)
	return err
}

// prepare returns what does once what a bench measures, for so many records.
func (s *suite) prepare(ctx context.Context, ses *session, b *benchCase) (once func() error, per int, stop func(), err error) {
	if b.node == nil {
		return func() error { return ses.vm.Call(b.fn, s.limit) }, 1, func() {}, nil
	}
	text, err := b.batch(ses, s.limit)
	if err != nil {
		return nil, 0, nil, err
	}
	// One of its own: the first batch must be the first.
	n, err := newNode(ctx, ses.mocks.catalog(s.folder.Catalog, true), b.node.name, b.node.body, noPosition)
	if err != nil {
		return nil, 0, nil, err
	}
	in, err := n.read(text)
	if err == nil && in.len() == 0 {
		err = errors.New("cannot measure an empty batch")
	}
	if err != nil {
		n.stop()
		return nil, 0, nil, err
	}
	return func() error { return n.measure(ctx, in) }, in.len(), n.stop, nil
}

// batch is the text of the batch.
func (b *benchCase) batch(ses *session, limit time.Duration) (text string, err error) {
	if text, ok := b.text.(string); ok {
		return text, nil
	}
	err = ses.vm.Call(func(args ...scripting.Value) (scripting.Value, error) {
		v, err := b.text.(scripting.Callback)(args...)
		if made, ok := v.(string); ok {
			text = made
		} else if err == nil {
			err = fmt.Errorf("cannot measure the batch: its function returned a %s, not a string", typeName(v))
		}
		return nil, err
	}, limit)
	return text, err
}

// measure sends a batch of which nothing is kept. An error in the script is
// one.
func (n *testNode) measure(ctx context.Context, in input) (err error) {
	ctx = node.Observe(ctx, n.failed)
	if in.logs != nil {
		err = n.in.ConsumeLogs(ctx, in.logs)
	} else {
		err = n.in.ConsumeMetrics(ctx, in.metrics)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.came, n.cameLogs = n.came[:0], n.cameLogs[:0]
	if err == nil && len(n.errors) > 0 {
		err = n.errors[0]
	}
	return err
}

// repeat calls f for about the given time. The results are those of the last
// round, which has enough calls.
func repeat(long time.Duration, f func() error) (took time.Duration, allocs uint64, calls int, err error) {
	var before, after runtime.MemStats
	for calls = 1; ; {
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		for range calls {
			if err = f(); err != nil {
				return 0, 0, calls, err
			}
		}
		took = time.Since(began)
		runtime.ReadMemStats(&after)
		if took >= long {
			return took, after.Mallocs - before.Mallocs, calls, nil
		}
		grow := 1.2 * float64(long) / float64(max(took, time.Microsecond))
		calls = int(math.Ceil(float64(calls) * min(max(grow, 1.1), 100)))
	}
}
