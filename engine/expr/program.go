package expr

import (
	"math"
	"reflect"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-run/weir/engine/batch"
)

// Sample is what an expression is evaluated on: scratch memory of one caller,
// filled anew for each sample. Not safe for concurrent use.
type Sample struct {
	Series *batch.Series // of a line, its stream
	Value  float64
	Time   int64 // Unix ms
	Line   string
	Meta   []batch.Label // sorted by name

	err error
}

// Kind is what an expression must result in.
type Kind uint8

// The kinds.
const (
	Bool   Kind = iota // a predicate
	Number             // int or float
	String
)

func (k Kind) String() string { return [...]string{"true or false", "a number", "a string"}[k] }

// Verdict is an answer that may be open.
type Verdict uint8

// The verdicts. Open means: the labels alone do not tell, or evaluating failed.
const (
	Open Verdict = iota
	False
	True
)

// Program is a compiled expression, safe for concurrent use.
type Program struct {
	reads reads

	all    []conjunct // of a predicate: its top-level && in order; else empty
	labels []conjunct // those that make the label part
	rest   []conjunct // the others
	fails  bool       // one of rest may fail

	number func(*Sample) float64
	text   func(*Sample) string
}

// conjunct is one operand of a predicate's top-level &&.
type conjunct struct {
	reads reads
	eval  func(*Sample) bool
	open  func(*Sample) Verdict // without judging the value
}

// Compile compiles src, which must result in kind. args are the arguments of
// the block, by name: strings, numbers, booleans, durations (seconds), lists
// and maps of them; they become constants. The error is an *Error.
func Compile(src string, kind Kind, args map[string]any) (*Program, error) {
	return compile(src, kind, args, false)
}

// CompileLogs is Compile for an expression over log lines: it sees line, labels,
// meta, time and args.
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

// split puts the newest conjunct into the label part or into the rest. A
// conjunct moves into the label part only past conjuncts that cannot fail: it
// must not hide the error of one that expr would have evaluated first.
func (p *Program) split(fails bool) {
	c := p.all[len(p.all)-1]
	if c.reads&^readsLabels == 0 && !p.fails {
		p.labels = append(p.labels, c)
		return
	}
	p.rest = append(p.rest, c)
	p.fails = p.fails || fails
}

// HasRest reports whether a predicate has conjuncts besides its label part.
func (p *Program) HasRest() bool { return len(p.rest) > 0 }

// LabelPart evaluates the label part of a predicate, of x.Series alone: False
// when no sample of the series matches; True when Rest decides, or, without
// HasRest, when every sample matches; Open when evaluating failed, so that Bool
// must be asked per sample. Without a label part it is True.
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

// Rest evaluates what is not in the label part. The error is an *Error.
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

// WithoutValue evaluates a predicate on a sample that has no value to judge: a
// staleness marker, a native histogram. Conjuncts that only the value could
// decide are left out: False when one of the others is false, True when there
// are others, Open when there are none.
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

// ReadsSample reports whether the result depends on the sample, its value or
// its time, or on the line. When it does not, it is the same for every sample of a series.
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
		return true // known when it runs
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
