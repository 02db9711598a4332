package scripttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// maxSent is how many of the batches that tests sent are what fuzzing begins
// with, of each script.
const maxSent = 200

// maxKept is how long such a batch may be, in bytes.
const maxKept = 16 << 10

// opened is a component that a test opened: a block, with what it was sent.
type opened struct {
	name, body string
	args       scripting.Value // as the test wrote them; nil: body is from an example
	sent       []string
}

// fuzz sends hostile batches to every script that is a target, in all the ways
// in which tests and examples open it, for o.Fuzz altogether.
func fuzz(ctx context.Context, o Options, targets []target, r *Report, each func(File)) {
	var jobs []*fuzzer
	for _, t := range targets {
		if t.script.Name == "" {
			continue
		}
		if reg, ok := t.suite.folder.Catalog.Lookup(t.name); !ok || reg.Err != nil || reg.Accepts&batch.SignalMetrics == 0 || reg.Sends == 0 {
			continue // of a sink it would be the world outside that fails
		}
		jobs = append(jobs, newFuzzer(o, t, r.opened))
	}
	for i, f := range jobs {
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		left := o.Fuzz - time.Since(f.began(jobs[0], began))
		share, cancel := context.WithTimeout(ctx, max(left/time.Duration(len(jobs)-i), time.Millisecond))
		test := f.run(share)
		cancel()
		if ctx.Err() != nil {
			return
		}
		file := File{Name: f.t.script.Name, Tests: []Test{test}, Elapsed: time.Since(began)}
		r.Files = append(r.Files, file)
		each(file)
	}
}

// fuzzer makes batches for one script.
type fuzzer struct {
	suite   *suite
	t       target
	rng     *rand.Rand
	blocks  []opened
	corpus  [][]sample
	started time.Time
	sent    int
}

// began notes when the first of all began.
func (f *fuzzer) began(first *fuzzer, now time.Time) time.Time {
	if first.started.IsZero() {
		first.started = now
	}
	return first.started
}

func newFuzzer(o Options, t target, known []opened) *fuzzer {
	h := fnv.New64a()
	h.Write([]byte(t.name))
	f := &fuzzer{suite: t.suite, t: t, rng: rand.New(rand.NewPCG(o.Seed, h.Sum64()))}
	texts := []string{everyMetricKind, nativeHistograms, specialValues, oddNames}
	for _, e := range scripting.ParseHeader(t.lang.Comment(t.script.Text)).Examples {
		f.add(opened{name: t.name, body: e.Args})
		texts = append(texts, e.Input)
	}
	for _, b := range known {
		if b.name == t.name {
			f.add(b)
			texts = append(texts, b.sent...)
		}
	}
	if len(f.blocks) == 0 {
		f.add(opened{name: t.name})
	}
	slices.Sort(texts)
	for _, text := range slices.Compact(texts) {
		if b, err := batch.ParseText(text, batch.TextOptions{T: noTime}); err == nil && b.Len() > 0 {
			f.corpus = append(f.corpus, samplesOf(b))
		}
	}
	return f
}

// add adds a block that is not known yet.
func (f *fuzzer) add(b opened) {
	if !slices.ContainsFunc(f.blocks, func(o opened) bool { return o.body == b.body }) {
		f.blocks = append(f.blocks, b)
	}
}

// run goes on until ctx ends or a batch is found that the script does not
// survive.
func (f *fuzzer) run(ctx context.Context) Test {
	test := Test{Name: f.t.name + " survives hostile batches", Line: 1, Status: Passed}
	began := time.Now()
	nodes := make([]*testNode, len(f.blocks))
	defer func() {
		for _, n := range nodes {
			if n != nil {
				n.stop()
			}
		}
	}()
	var found error
	// The existing corpus runs first, unchanged, so that even a short time finds
	// known failures.
	for i := 0; found == nil && (i < len(f.corpus)*len(f.blocks) || ctx.Err() == nil); i++ {
		block := i % len(f.blocks)
		var in []sample
		if i < len(f.corpus)*len(f.blocks) {
			in = f.corpus[i/len(f.blocks)]
		} else {
			in = f.mutate(f.corpus[f.rng.IntN(len(f.corpus))])
		}
		n := nodes[block]
		if n == nil || f.sent%1000 == 999 { // what was remembered of series that come no more
			if n != nil {
				n.stop()
			}
			var err error
			if n, err = f.open(block); err != nil {
				found = err
				nodes[block] = nil
				break
			}
			nodes[block] = n
		}
		f.sent++
		if err := survives(n, in); err != nil {
			found = f.explain(block, in, err)
		}
		if found == nil && i%64 == 0 {
			found = f.repeatable(block, in)
		}
	}
	test.Elapsed = time.Since(began)
	test.Name += fmt.Sprintf(" (%d)", f.sent)
	if found != nil {
		test.Status = Failed
		test.Problem = problemOf(found, f.t.script.Name)
		if e, ok := errors.AsType[*foundError](found); ok {
			test.Problem.Diff = e.test
		}
	}
	return test
}

func (f *fuzzer) open(block int) (*testNode, error) {
	return newNode(context.Background(), new(mocks).catalog(f.suite.folder.Catalog, true), f.t.name, f.blocks[block].body, config.Span{File: f.t.script.Name})
}

// survives sends a batch; the error is the script's, or says what is wrong with
// what came out.
func survives(n *testNode, in []sample) error {
	b, err := n.parse(textOfSamples(in))
	if err != nil {
		return nil // no source makes such a batch
	}
	out, err := n.send(context.Background(), b) // it does not wait
	if err != nil {
		return err
	}
	if len(out.errors) > 0 {
		return out.errors[0]
	}
	if _, err := batch.ParseText(out.text(), batch.TextOptions{T: out.t}); err != nil {
		return fmt.Errorf("what came out is no batch: %w", err)
	}
	return nil
}

// repeatable holds that two new components make the same of a batch.
func (f *fuzzer) repeatable(block int, in []sample) error {
	var texts [2]string
	for i := range texts {
		n, err := f.open(block)
		if err != nil {
			return err
		}
		b, err := n.parse(textOfSamples(in))
		if err == nil {
			var out *output
			if out, err = n.send(context.Background(), b); err == nil { // it does not wait
				texts[i] = strings.Join(lines(rows(out.t, out.batches...), nil, true, false), "\n")
			}
		}
		n.stop()
		if err != nil {
			return nil // which the others tell
		}
	}
	if texts[0] == texts[1] {
		return nil
	}
	return &foundError{
		err:  &Failure{Msg: "two new components make different things of one batch"},
		test: lineDiff(splitLines(texts[0]), splitLines(texts[1])) + f.asTest(block, in),
	}
}

// foundError is an error with a test that shows it.
type foundError struct {
	err  error
	test string
}

func (e *foundError) Error() string { return e.err.Error() }

// Unwrap returns the script's error.
func (e *foundError) Unwrap() error { return e.err }

// explain makes a batch on which the script fails as small as it can be.
func (f *fuzzer) explain(block int, in []sample, err error) error {
	again := func(in []sample) error {
		n, openErr := f.open(block)
		if openErr != nil {
			return openErr
		}
		defer n.stop()
		return survives(n, in)
	}
	if now := again(in); now == nil {
		return &foundError{err: fmt.Errorf("%w\nafter %d other batches; a new component does not fail on this one", err, f.sent-1), test: f.asTest(block, in)}
	} else {
		err = now
	}
	small := shrink(in, func(s []sample) bool {
		e := again(s)
		if e == nil || place(e) != place(err) {
			return false
		}
		err = e
		return true
	})
	return &foundError{err: err, test: f.asTest(block, small)}
}

// place is what makes an error the same one.
func place(err error) string {
	if e, ok := errors.AsType[*scripting.Error](err); ok {
		return e.Pos()
	}
	return err.Error()
}

// asTest writes a test that sends a batch.
func (f *fuzzer) asTest(block int, in []sample) string {
	var b strings.Builder
	file := f.t.script.Name[strings.LastIndexByte(f.t.script.Name, '/')+1:]
	o := f.blocks[block]
	tester, _ := f.t.lang.(scripting.Tester)
	vitest := tester != nil && tester.Words() == scripting.Vitest
	head, mark := "it(\"survives what --fuzz found\", function()\n", "--"
	if vitest {
		head, mark = "it(\"survives what --fuzz found\", () => {\n", "//"
	}
	b.WriteString(head)
	if o.args == nil && o.body != "" {
		b.WriteString("  " + mark + " with the arguments of an example:\n")
		for _, l := range splitLines(o.body) {
			b.WriteString("  " + mark + "   " + l + "\n")
		}
	}
	args := ""
	if o.args != nil {
		args = ", " + showFlat(o.args)
	}
	text := tidy(textOfSamples(in))
	if vitest {
		fmt.Fprintf(&b, "  const t = component(%q%s);\n  t.metrics(%s);\n});\n", file, argsOf(o.args), templateLiteral(text))
		return b.String()
	}
	level := ""
	for strings.Contains(text, "]"+level+"]") {
		level += "="
	}
	fmt.Fprintf(&b, "  local t = weir.test.component(%q%s)\n  t:metrics [%s[\n", file, args, level)
	for _, l := range splitLines(text) {
		b.WriteString("    " + l + "\n")
	}
	b.WriteString("  ]" + level + "]\nend)\n")
	return b.String()
}

// templateLiteral is a text of lines as JavaScript writes it.
func templateLiteral(text string) string {
	text = templateEscapes.Replace(text)
	var b strings.Builder
	b.WriteString("`\n")
	for _, l := range splitLines(text) {
		b.WriteString("    " + l + "\n")
	}
	return b.String() + "  `"
}

// argsOf are the arguments of a component as JavaScript writes them.
func argsOf(args scripting.Value) string {
	if args == nil {
		return ""
	}
	text, err := json.Marshal(jsonOf(args))
	if err != nil {
		return ", {}" // what no config has
	}
	return ", " + string(text)
}

// jsonOf is a value as encoding/json takes it.
func jsonOf(v scripting.Value) any {
	switch v := v.(type) {
	case *scripting.List:
		out := make([]any, len(v.Items))
		for i, e := range v.Items {
			out[i] = jsonOf(e)
		}
		return out
	case *scripting.Map:
		out := map[string]any{}
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			out[k] = jsonOf(e)
		}
		return out
	case bool, int64, float64, string:
		return v
	}
	return nil
}
