package expr

import (
	"errors"
	"sync"

	"github.com/expr-lang/expr/ast"
	exprcompiler "github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
)

var errTooLong = errors.New("the result of replace is longer than 64 KiB")

// machine runs a subtree without a closure on expr's own VM.
type machine struct {
	src   string
	prog  *vm.Program
	reads reads
	logs  bool
	pool  sync.Pool // of *run
}

type run struct {
	vm  vm.VM
	env map[string]any
}

func (c *compiler) machine(n ast.Node) *machine {
	ast.Walk(&n, boundMatches{})
	prog, err := exprcompiler.Compile(&parser.Tree{Node: n, Source: file.NewSource(c.src)}, c.conf)
	if err != nil {
		if c.err == nil {
			c.err = foreign(c.src, err)
		}
		return nil
	}
	m := &machine{src: c.src, prog: prog, reads: dependsOn(n), logs: c.logs}
	m.pool.New = func() any { return &run{env: map[string]any{}} }
	return m
}

// boundMatches replaces the operator matches by our own function: expr's
// compiles a pattern of any size, and matches texts of any length.
type boundMatches struct{}

// Visit implements ast.Visitor.
func (boundMatches) Visit(n *ast.Node) {
	b, ok := (*n).(*ast.BinaryNode)
	if !ok || b.Operator != "matches" {
		return
	}
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: b.Operator}, Arguments: []ast.Node{b.Left, b.Right}}
	call.SetLocation(b.Location())
	call.SetNature(*b.Nature())
	*n = call
}

// patterns caches the patterns used on VMs. A pattern that is an element of a
// list may differ each time.
var patterns = regex.NewCache(4 << 20)

// matches is the operator on expr's VM.
func matches(a ...any) (any, error) {
	s, ok1 := a[0].(string)
	pattern, ok2 := a[1].(string)
	if !ok1 || !ok2 {
		return false, nil // nil matches nothing
	}
	re, err := patterns.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return re.Match(s, regex.Guard{Steps: regex.MaxSteps})
}

// eval returns the result of the subtree for x. It returns nil after an error,
// which is in x.
func (m *machine) eval(x *Sample) any {
	r := m.pool.Get().(*run)
	defer m.pool.Put(r)
	m.fill(r.env, x)
	out, err := r.vm.Run(m.prog, r.env)
	clear(r.env)
	if err != nil {
		e := foreign(m.src, err)
		e.failure = true
		x.fail(e)
		return nil
	}
	return out
}

func (m *machine) fill(env map[string]any, x *Sample) {
	if m.logs {
		if m.reads&readsLabels != 0 {
			env["labels"] = labelMap(x.Series, true)
		}
		if m.reads&readsLine != 0 {
			env["line"], env["meta"] = x.Line, metaMap(x.Meta)
		}
	} else if m.reads&readsLabels != 0 {
		env["name"], env["type"], env["labels"] = x.Series.Name(), typeOf(x.Series), labelMap(x.Series, false)
	}
	if m.reads&readsValue != 0 {
		env["value"] = x.Value
	}
	if m.reads&readsTime != 0 {
		env["time"] = int(x.Time)
	}
}

func labelMap(s *batch.Series, logs bool) map[string]string {
	m := map[string]string{}
	for n, v := range s.Labels() {
		if n != batch.NameLabel || logs {
			m[n] = v
		}
	}
	return m
}

func metaMap(meta []batch.Label) map[string]string {
	m := map[string]string{}
	for _, l := range meta {
		if l.Value != "" {
			m[l.Name] = l.Value
		}
	}
	return m
}

// typeOf returns the value of type in expressions.
func typeOf(s *batch.Series) string {
	if m := s.Meta(); m != nil && m.Type != "" {
		return string(m.Type)
	}
	return "unknown"
}

// byMachineAs runs n on expr's VM. If the result is not a T, the evaluation
// fails with an error that names want.
func byMachineAs[T any](c *compiler, n ast.Node, want string) func(*Sample) T {
	m := c.machine(n)
	if m == nil {
		return nil
	}
	at := c.errorFor(n)
	return func(x *Sample) T {
		v := m.eval(x)
		t, ok := v.(T)
		if !ok {
			x.failAt(at, "it must be %s, not %v", want, v)
		}
		return t
	}
}

func (c *compiler) numberByMachine(n ast.Node) func(*Sample) float64 {
	m := c.machine(n)
	if m == nil {
		return nil
	}
	at := c.errorFor(n)
	return func(x *Sample) float64 {
		switch v := m.eval(x).(type) {
		case float64:
			return v
		case int:
			return float64(v)
		default:
			x.failAt(at, "it must be a number, not %v", v)
		}
		return 0
	}
}
