package expr

import (
	"math"
	"reflect"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-run/weir/engine/batch"
)

// Sample is the input of an evaluation: scratch memory of one caller, set again
// for each sample. It is not safe for concurrent use.
type Sample struct {
	Series *batch.Series // of a line: its stream
	Value  float64
	Time   int64 // Unix ms
	Line   string
	Meta   []batch.Label // sorted by name

	err error
}

// Kind is the result type of an expression.
type Kind uint8

// The kinds.
const (
	Bool   Kind = iota // a predicate
	Number             // int or float
	String
)

func (k Kind) String() string { return [...]string{"true or false", "a number", "a string"}[k] }

// Verdict is true, false or open.
type Verdict uint8

// The verdicts. Open means that the labels alone do not decide, or that the
// evaluation failed.
const (
	Open Verdict = iota
	False
	True
)

// Program is a compiled expression, safe for concurrent use.
type Program struct {
	reads reads

	all    []conjunct // of a predicate: its top-level && in order; otherwise empty
	labels []conjunct // the label part
	rest   []conjunct // the remaining conjuncts
	fails  bool       // a conjunct of rest may fail

	number func(*Sample) float64
	text   func(*Sample) string
}

// conjunct is one operand of a predicate's top-level &&.
type conjunct struct {
	reads reads
	eval  func(*Sample) bool
	open  func(*Sample) Verdict // without judging the value
}

// Compile compiles src, whose result type must be kind. args are the arguments
// of the block, by name: strings, numbers, booleans, durations (seconds), lists
// and maps of them. They become constants. The error is an *Error.
func Compile(src string, kind Kind, args map[string]any) (*Program, error) {
	return compile(src, kind, args, false)
}

// CompileLogs is like Compile, for an expression over log lines: it sees line,
// labels, meta, time and args.
func CompileLogs(src string, kind Kind, args map[string]any) (*Program, error) {
	return compile(src, kind, args, true)
}

func compile(src string, kind Kind, args map[string]any, logs bool) (*Program, error) {
	tree, conf, perr := parse(src, args, logs)
	if perr != nil {
		return nil, perr
	}
	if !fits(tree.Node, kind) {
		return nil, errorAt(src, tree.Node.Location(), "it must be %s, not %s", kind, typeName(tree.Node.Type()))
	}
	loosenTypes(tree.Node)
	p := &Program{reads: dependsOn(tree.Node)}
	c := &compiler{src: src, conf: conf, logs: logs}
	switch kind {
	case Bool:
		for _, n := range conjuncts(tree.Node, nil) {
			e := c.node(n)
			p.all = append(p.all, conjunct{reads: dependsOn(n), eval: c.asBool(n, e), open: c.open(n)})
			p.split(e.fails)
		}
	case Number:
		p.number = c.asNumber(tree.Node, c.node(tree.Node))
	case String:
		p.text = c.asText(tree.Node, c.node(tree.Node))
	}
	if c.err != nil {
		return nil, c.err
	}
	return p, nil
}

// split adds the newest conjunct to the label part or to the rest. A conjunct
// moves into the label part only past conjuncts that cannot fail: it must not
// hide an error that expr would have found first.
func (p *Program) split(fails bool) {
	c := p.all[len(p.all)-1]
	if c.reads&^readsLabels == 0 && !p.fails {
		p.labels = append(p.labels, c)
		return
	}
	p.rest = append(p.rest, c)
	p.fails = p.fails || fails
}

// HasRest reports whether a predicate has conjuncts that are not in its label
// part.
func (p *Program) HasRest() bool { return len(p.rest) > 0 }

// LabelPart evaluates the label part of a predicate, which depends on x.Series
// alone. It returns False if no sample of the series matches; True if Rest
// decides, or, without HasRest, if every sample matches; and Open if evaluating
// failed, so that Bool must be called per sample. Without a label part, it
// returns True.
func (p *Program) LabelPart(x *Sample) Verdict {
	for i := range p.labels {
		ok := p.labels[i].eval(x)
		if x.err != nil {
			x.err = nil
			return Open
		}
		if !ok {
			return False
		}
	}
	return True
}

// Rest evaluates the conjuncts that are not in the label part. The error is an
// *Error.
func (p *Program) Rest(x *Sample) (bool, error) { return every(p.rest, x) }

// Bool evaluates a predicate. The error is an *Error.
func (p *Program) Bool(x *Sample) (bool, error) { return every(p.all, x) }

func every(cs []conjunct, x *Sample) (bool, error) {
	for i := range cs {
		ok := cs[i].eval(x)
		if x.err != nil {
			return false, x.takeError()
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// WithoutValue evaluates a predicate on a sample without a float value: a
// staleness marker or a native histogram. Conjuncts that only the value could
// decide are ignored. It returns False if another conjunct is false, True if
// there are other conjuncts, and Open if there are none.
func (p *Program) WithoutValue(x *Sample) (Verdict, error) {
	out := Open
	for i := range p.all {
		v := p.all[i].open(x)
		if x.err != nil {
			return Open, x.takeError()
		}
		switch v {
		case False:
			return False, nil
		case True:
			out = True
		}
	}
	return out, nil
}

// Float evaluates a Number program. The error is an *Error.
func (p *Program) Float(x *Sample) (float64, error) {
	f := p.number(x)
	if x.err != nil {
		return math.NaN(), x.takeError()
	}
	return f, nil
}

// Text evaluates a String program. The error is an *Error.
func (p *Program) Text(x *Sample) (string, error) {
	s := p.text(x)
	if x.err != nil {
		return "", x.takeError()
	}
	return s, nil
}

// ReadsValue reports whether the result depends on the sample's value.
func (p *Program) ReadsValue() bool { return p.reads&readsValue != 0 }

// ReadsSample reports whether the result depends on the value or the time of
// the sample, or on the line. If not, it is the same for every sample of a
// series.
func (p *Program) ReadsSample() bool { return p.reads&^readsLabels != 0 }

func (x *Sample) takeError() error {
	err := x.err
	x.err = nil
	return err
}

// fail keeps the first error of an evaluation.
func (x *Sample) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

func conjuncts(n ast.Node, out []ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && isAnd(b) {
		return conjuncts(b.Right, conjuncts(b.Left, out))
	}
	return append(out, n)
}

func isAnd(b *ast.BinaryNode) bool { return b.Operator == "&&" || b.Operator == "and" }
func isOr(b *ast.BinaryNode) bool  { return b.Operator == "||" || b.Operator == "or" }

func fits(n ast.Node, k Kind) bool {
	if _, ok := n.(*ast.NilNode); ok {
		return false
	}
	switch n.Type().Kind() {
	case reflect.Interface:
		return true // it is known when it runs
	case reflect.Bool:
		return k == Bool
	case reflect.Int, reflect.Float64:
		return k == Number
	case reflect.String:
		return k == String
	}
	return false
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map:
		return "a map"
	}
	return "nothing"
}
