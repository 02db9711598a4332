package stdlib

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/weir-run/weir/scripting"
)

const (
	maxPattern = 8 << 10
	maxMatches = 100_000
	// maxWork bounds the pattern's instructions times the text's bytes, which
	// is what a match may cost: nothing can stop one that runs.
	maxWork = 1 << 24
)

// pattern is a compiled pattern: a scripting.Pattern.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// Fits reports whether matching s takes a bounded time.
func (p *pattern) Fits(s string) error {
	if p.size*len(s) > maxWork {
		return fmt.Errorf("cannot match a text of %d bytes with a pattern of %d instructions: at most %d bytes", len(s), p.size, maxWork/p.size)
	}
	return nil
}

// reModule is RE2: linear in its input, whatever the pattern.
//
// Syntax: https://github.com/google/re2/wiki/Syntax
func reModule() *scripting.Module {
	patterns := newCache[*pattern](1000)
	typ := &scripting.ObjectType{
		Name:   "re.Pattern",
		Doc:    "A compiled pattern. Compile outside the hooks: the methods then cost no look-up.",
		New:    "compile",
		String: func(data any) string { return data.(*pattern).String() },
	}
	compiled := func(v scripting.Value) (*pattern, error) { return patterns.get(v.(string), compile) }

	ops := []scripting.Function{
		{
			Name:   "match",
			Doc:    "Reports whether the pattern matches somewhere in the text. Anchor it with ^ and $ to match all of it.",
			Params: []scripting.Param{text("s", "The text.")},
			Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether it matches.", Fails: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				p, s := a[0].(*pattern), a[1].(string)
				if err := p.Fits(s); err != nil {
					return nil, err
				}
				return p.MatchString(s), nil
			},
			Examples: examples(`\d+`,
				ex(true, "a1b"),
				ex(false, "ab")),
		},
		{
			Name:   "find",
			Doc:    "Returns the first match: the matched text, then its groups; a group that took no part is an empty text.",
			Params: []scripting.Param{text("s", "The text.")},
			Result: scripting.Result{Kind: scripting.KindList, Doc: "The match and its groups, nothing when there is no match.", Optional: true, Fails: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				p, s := a[0].(*pattern), a[1].(string)
				if err := p.Fits(s); err != nil {
					return nil, err
				}
				m := p.FindStringSubmatch(s)
				if m == nil {
					return nil, nil
				}
				return stringList(m), nil
			},
			Examples: examples(`(\w+)@(\w+)(\.\w+)?`,
				ex(list("joe@home", "joe", "home", ""), "to joe@home"),
				ex(nil, "nobody")),
		},
		{
			Name: "replace",
			Doc:  "Replaces every match. In the replacement $1 or ${name} is a group, $0 the match, $$ a dollar sign.",
			Params: []scripting.Param{
				text("s", "The text."),
				{Name: "with", Kind: scripting.KindString, Doc: "The replacement, or a function of the match and its groups that returns it, or nil to leave the match as it is.",
					Or: []scripting.Param{{Kind: scripting.KindFunction, Call: &scripting.Function{
						Params: []scripting.Param{text("match", "The match."), {Name: "groups", Kind: scripting.KindList, Doc: "Its groups; one that took no part is an empty text."}},
						Result: scripting.Result{Kind: scripting.KindString, Optional: true},
					}}}},
			},
			Result: scripting.Result{Kind: scripting.KindString, Doc: "The text with the replacements.", Fails: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				p, s := a[0].(*pattern), a[1].(string)
				if fn, ok := a[2].(scripting.Callback); ok {
					return replaceBy(p, s, func(dst []byte, m []int) ([]byte, error) { return appendAnswer(dst, fn, s, m) })
				}
				return replaceAll(p, s, a[2].(string))
			},
			Uses: []scripting.Use{{
				Lua: "local re = require \"re\"\nlocal digits = re.compile [[\\d+]]\n" +
					"batch:map_label(\"path\", function(p)\n  return digits:replace(p, function(n) return #n > 2 and \":id\" or nil end)\nend)",
				JS: "import re from \"weir/re\";\nconst digits = re.compile(\"\\\\d+\");\n" +
					"batch.mapLabel(\"path\", (p) => digits.replace(p, (n) => (n.length > 2 ? \":id\" : undefined)));",
				Input: `hits_total{path="/v2/users/4711"} 1` + "\n", Output: `hits_total{path="/v2/users/:id"} 1` + "\n",
			}},
			Examples: examples(`/(\d+)\b`,
				ex("/users/:id/orders/:id", "/users/42/orders/7", "/:id"),
				ex("<42>", "/42", "<$1>")),
		},
		{
			Name: "split",
			Doc:  "Splits the text at every match.",
			Params: []scripting.Param{
				text("s", "The text."),
				{Name: "max", Kind: scripting.KindInt, Doc: "At most so many parts; the last one is the rest.", Optional: true},
			},
			Result: scripting.Result{Kind: scripting.KindList, Doc: "The parts.", Fails: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				return split(a[0].(*pattern), a[1].(string), a[2])
			},
			Examples: examples(`\s*,\s*`,
				ex(list("a", "b", "c"), "a, b ,c"),
				ex(list("a", "b ,c"), "a, b ,c", int64(2)),
				ex(list(""), "")),
		},
	}
	typ.Methods = ops

	m := &scripting.Module{
		Name:  "re",
		Doc:   "Regular expressions (RE2: no backreferences, no lookaround, no pattern that hangs). Compiled patterns are remembered.",
		Types: []*scripting.ObjectType{typ},
	}
	m.Funcs = append(m.Funcs, scripting.Function{
		Name:   "compile",
		Doc:    "Compiles a pattern.",
		Params: []scripting.Param{checked(text("pattern", "The pattern, in RE2 syntax, at most 8 KiB."))},
		Result: scripting.Result{Kind: scripting.KindObject, Type: typ, Doc: "The compiled pattern.", Fails: true},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			re, err := compiled(a[0])
			if err != nil {
				return nil, err
			}
			return &scripting.Object{Type: typ, Data: re}, nil
		},
		Examples: []scripting.FunctionExample{
			ex(`/\d+`, `/\d+`),
			{Args: []scripting.Value{`(`}, Err: "missing closing )"},
		},
	})
	for _, op := range ops {
		m.Funcs = append(m.Funcs, withPattern(op, compiled))
	}
	m.Funcs = append(m.Funcs, scripting.Function{
		Name:     "quote",
		Doc:      "Returns a pattern that matches exactly the text.",
		Params:   []scripting.Param{text("s", "The text.")},
		Result:   scripting.Result{Kind: scripting.KindString, Doc: "The pattern."},
		Fn:       func(a []scripting.Value) (scripting.Value, error) { return regexp.QuoteMeta(a[0].(string)), nil },
		Examples: []scripting.FunctionExample{ex(`a\.b\*`, "a.b*")},
	})
	return m
}

// withPattern makes a function of a method: the pattern comes first, as text.
func withPattern(op scripting.Function, compiled func(scripting.Value) (*pattern, error)) scripting.Function {
	f := op
	f.Params = append([]scripting.Param{checked(text("pattern", "The pattern."))}, op.Params...)
	f.Result.Fails = true
	f.Fn = func(a []scripting.Value) (scripting.Value, error) {
		re, err := compiled(a[0])
		if err != nil {
			return nil, err
		}
		a[0] = re
		return op.Fn(a)
	}
	f.Examples = nil
	for _, e := range op.Examples {
		f.Examples = append(f.Examples, scripting.FunctionExample{
			Args: append(append([]scripting.Value{}, e.Self...), e.Args...), Want: e.Want, Err: e.Err,
		})
	}
	return f
}

func compile(src string) (*pattern, error) {
	if len(src) > maxPattern {
		return nil, fmt.Errorf("cannot compile a pattern of %d bytes: at most %d", len(src), maxPattern)
	}
	re, err := regexp.Compile(src)
	if err != nil {
		return nil, fmt.Errorf("cannot compile pattern %q: %s", src, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	// regexp does not tell the size of its program: it is made once more.
	tree, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("cannot compile pattern %q: %w", src, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("cannot compile pattern %q: %w", src, err)
	}
	return &pattern{Regexp: re, size: len(prog.Inst)}, nil
}

func replaceAll(re *pattern, s, with string) (scripting.Value, error) {
	if err := re.Fits(s); err != nil {
		return nil, err
	}
	if !strings.Contains(with, "$") && (len(s)+1)*(len(with)+1) <= scripting.MaxString {
		return re.ReplaceAllLiteralString(s, with), nil
	}
	return replaceBy(re, s, func(dst []byte, m []int) ([]byte, error) { return re.ExpandString(dst, with, s, m), nil })
}

// replaceBy replaces every match by what is appended for it.
func replaceBy(re *pattern, s string, with func(dst []byte, m []int) ([]byte, error)) (_ scripting.Value, err error) {
	if err := re.Fits(s); err != nil {
		return nil, err
	}
	ms := re.FindAllStringSubmatchIndex(s, maxMatches+1)
	if len(ms) == 0 {
		return s, nil
	}
	if len(ms) > maxMatches {
		return nil, fmt.Errorf("cannot replace more than %d matches", maxMatches)
	}
	var out []byte
	last := 0
	for _, m := range ms {
		out = append(out, s[last:m[0]]...)
		if out, err = with(out, m); err != nil {
			return nil, err
		}
		last = m[1]
		if len(out) > scripting.MaxString {
			return nil, errLong("replace")
		}
	}
	if len(out)+len(s)-last > scripting.MaxString {
		return nil, errLong("replace")
	}
	return string(append(out, s[last:]...)), nil
}

// appendAnswer appends what a script's function makes of a match.
func appendAnswer(dst []byte, fn scripting.Callback, s string, m []int) ([]byte, error) {
	match, groups := s[m[0]:m[1]], &scripting.List{}
	for i := 2; i < len(m); i += 2 {
		g := ""
		if m[i] >= 0 {
			g = s[m[i]:m[i+1]]
		}
		groups.Items = append(groups.Items, g)
	}
	v, err := fn(match, groups)
	if err != nil {
		return nil, &scripting.ArgError{Func: "replace", Param: "with", Msg: "failed: " + err.Error()}
	}
	switch v := v.(type) {
	case nil:
		return append(dst, match...), nil
	case string:
		return append(dst, v...), nil
	}
	return nil, &scripting.ArgError{Func: "replace", Param: "with", Msg: "must return a text, or nothing to leave the match as it is"}
}

func split(re *pattern, s string, limit scripting.Value) (scripting.Value, error) {
	if err := re.Fits(s); err != nil {
		return nil, err
	}
	n := maxMatches + 1
	if limit != nil {
		n = int(min(limit.(int64), maxMatches))
		if n < 1 {
			return nil, fmt.Errorf("cannot split into %d parts", limit)
		}
	}
	parts := re.Split(s, n)
	if len(parts) > maxMatches {
		return nil, fmt.Errorf("cannot split into more than %d parts", maxMatches)
	}
	return stringList(parts), nil
}

func errLong(what string) error {
	return fmt.Errorf("cannot %s: the result is longer than %d bytes", what, scripting.MaxString)
}

func text(name, doc string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindString, Doc: doc}
}

func list(vs ...scripting.Value) *scripting.List { return &scripting.List{Items: vs} }

func stringList(ss []string) *scripting.List {
	l := &scripting.List{Items: make([]scripting.Value, len(ss))}
	for i, s := range ss {
		l.Items[i] = s
	}
	return l
}

// ex is an example with a result.
func ex(want scripting.Value, args ...scripting.Value) scripting.FunctionExample {
	return scripting.FunctionExample{Args: args, Want: want}
}

// examples are those of a method whose object is made of self.
func examples(self scripting.Value, es ...scripting.FunctionExample) []scripting.FunctionExample {
	for i := range es {
		es[i].Self = []scripting.Value{self}
	}
	return es
}

// checked makes a parameter one whose constants are compiled when a script is
// checked.
func checked(p scripting.Param) scripting.Param {
	p.Check = func(src string) error { _, err := compile(src); return err }
	return p
}
