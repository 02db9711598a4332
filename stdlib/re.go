package stdlib

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/scripting"
)

const (
	maxPattern = 8 << 10
	maxMatches = 100_000
	// patternBytes is the maximum size of the cache of patterns for all scripts.
	patternBytes = 16 << 20
)

// bounded returns the guard for one text.
func bounded(check func() error) regex.Guard {
	return regex.Guard{Steps: regex.MaxSteps, Check: check}
}

func unchecked() error { return nil }

// reModule is RE2: its run time is linear in the input for every pattern.
//
// Syntax: https://github.com/google/re2/wiki/Syntax
func reModule() *scripting.Module {
	patterns := regex.NewCache(patternBytes)
	typ := &scripting.ObjectType{
		Name:   "re.Pattern",
		Doc:    "A compiled pattern. Compile it outside the hooks: its methods then need no look-up.",
		New:    "compile",
		String: func(data any) string { return data.(*regex.Regexp).String() },
	}
	compiled := func(v scripting.Value) (*regex.Regexp, error) { return compile(v.(string), patterns.Compile) }

	ops := []scripting.Function{
		{
			Name:   "match",
			Doc:    "Reports whether the pattern matches anywhere in the text. Anchor it with ^ and $ to match the whole text.",
			Params: []scripting.Param{text("s", "The text.")},
			Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether it matches.", Fails: true},
			Checked: func(check func() error, a []scripting.Value) (scripting.Value, error) {
				return a[0].(*regex.Regexp).Match(a[1].(string), bounded(check))
			},
			Examples: examples(`\d+`,
				ex(true, "a1b"),
				ex(false, "ab")),
		},
		{
			Name:   "find",
			Doc:    "Returns the first match: the matched text, followed by its groups. A group that did not participate in the match is an empty string.",
			Params: []scripting.Param{text("s", "The text.")},
			Result: scripting.Result{Kind: scripting.KindList, Doc: "The match and its groups, or nothing if there is no match.", Optional: true, Fails: true},
			Checked: func(check func() error, a []scripting.Value) (scripting.Value, error) {
				s := a[1].(string)
				m, err := a[0].(*regex.Regexp).FindSubmatchIndex(s, bounded(check))
				if m == nil {
					return nil, err
				}
				return &scripting.List{Items: append([]scripting.Value{s[m[0]:m[1]]}, groups(s, m).Items...)}, nil
			},
			Examples: examples(`(\w+)@(\w+)(\.\w+)?`,
				ex(list("joe@home", "joe", "home", ""), "to joe@home"),
				ex(nil, "nobody")),
		},
		{
			Name: "replace",
			Doc:  "Replaces every match. In the replacement, $1 or ${name} is a group, $0 is the whole match, and $$ is a dollar sign.",
			Params: []scripting.Param{
				text("s", "The text."),
				{Name: "with", Kind: scripting.KindString, Doc: "The replacement, or a function that receives the match and its groups and returns the replacement, or nil to leave the match unchanged.",
					Or: []scripting.Param{{Kind: scripting.KindFunction, Call: &scripting.Function{
						Params: []scripting.Param{text("match", "The match."), {Name: "groups", Kind: scripting.KindList, Doc: "Its groups; a group that did not participate in the match is an empty string."}},
						Result: scripting.Result{Kind: scripting.KindString, Optional: true},
					}}}},
			},
			Result: scripting.Result{Kind: scripting.KindString, Doc: "The text with the replacements.", Fails: true},
			Checked: func(check func() error, a []scripting.Value) (scripting.Value, error) {
				p, s := a[0].(*regex.Regexp), a[1].(string)
				if fn, ok := a[2].(scripting.Callback); ok {
					return replace(p, s, bounded(check), few(func(dst []byte, m []int) ([]byte, error) { return appendAnswer(dst, fn, s, m) }))
				}
				with := a[2].(string)
				if strings.Contains(with, "$") {
					return replace(p, s, bounded(check), few(func(dst []byte, m []int) ([]byte, error) { return p.Expand(dst, with, s, m), nil }))
				}
				return replace(p, s, bounded(check), func(dst []byte, _ []int) ([]byte, error) { return append(dst, with...), nil })
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
				{Name: "max", Kind: scripting.KindInt, Doc: "The maximum number of parts; the last part contains the rest.", Optional: true},
			},
			Result: scripting.Result{Kind: scripting.KindList, Doc: "The parts.", Fails: true},
			Checked: func(check func() error, a []scripting.Value) (scripting.Value, error) {
				return split(a[0].(*regex.Regexp), a[1].(string), a[2], bounded(check))
			},
			Examples: examples(`\s*,\s*`,
				ex(list("a", "b", "c"), "a, b ,c"),
				ex(list("a", "b ,c"), "a, b ,c", int64(2)),
				ex(list(""), "")),
		},
	}
	for i := range ops {
		ops[i].Fn = func(a []scripting.Value) (scripting.Value, error) { return ops[i].Checked(unchecked, a) }
	}
	typ.Methods = ops

	m := &scripting.Module{
		Name:  "re",
		Doc:   "Regular expressions (RE2: no backreferences or lookaround; matching takes linear time). Compiled patterns are cached.",
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
		Doc:      "Returns a pattern that matches exactly this text.",
		Params:   []scripting.Param{text("s", "The text.")},
		Result:   scripting.Result{Kind: scripting.KindString, Doc: "The pattern."},
		Fn:       func(a []scripting.Value) (scripting.Value, error) { return regexp.QuoteMeta(a[0].(string)), nil },
		Examples: []scripting.FunctionExample{ex(`a\.b\*`, "a.b*")},
	})
	return m
}

// withPattern converts a method to a function with the pattern, as text, as its
// first parameter.
func withPattern(op scripting.Function, compiled func(scripting.Value) (*regex.Regexp, error)) scripting.Function {
	f := op
	f.Params = append([]scripting.Param{checked(text("pattern", "The pattern."))}, op.Params...)
	f.Result.Fails = true
	f.Fn = func(a []scripting.Value) (scripting.Value, error) { return f.Checked(unchecked, a) }
	f.Checked = func(check func() error, a []scripting.Value) (scripting.Value, error) {
		re, err := compiled(a[0])
		if err != nil {
			return nil, err
		}
		a[0] = re
		return op.Checked(check, a)
	}
	f.Examples = nil
	for _, e := range op.Examples {
		f.Examples = append(f.Examples, scripting.FunctionExample{
			Args: append(append([]scripting.Value{}, e.Self...), e.Args...), Want: e.Want, Err: e.Err,
		})
	}
	return f
}

// compile compiles a pattern with by, which may use a cache.
func compile(src string, by func(string) (*regex.Regexp, error)) (*regex.Regexp, error) {
	if len(src) > maxPattern {
		return nil, fmt.Errorf("cannot compile a pattern of %d bytes: the limit is %d", len(src), maxPattern)
	}
	re, err := by(src)
	if err != nil {
		return nil, fmt.Errorf("cannot compile pattern %q: %s", regex.Shorten(src), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, nil
}

// replace replaces every match by the text that with appends.
func replace(re *regex.Regexp, s string, g regex.Guard, with func(dst []byte, m []int) ([]byte, error)) (scripting.Value, error) {
	out, err := re.Replace(s, scripting.MaxString, g, with)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// few limits with to maxMatches matches.
func few(with func(dst []byte, m []int) ([]byte, error)) func(dst []byte, m []int) ([]byte, error) {
	n := 0
	return func(dst []byte, m []int) ([]byte, error) {
		if n++; n > maxMatches {
			return nil, fmt.Errorf("cannot replace more than %d matches", maxMatches)
		}
		return with(dst, m)
	}
}

// appendAnswer appends the result of a script's function for a match.
func appendAnswer(dst []byte, fn scripting.Callback, s string, m []int) ([]byte, error) {
	match := scripting.Part(s[m[0]:m[1]], s)
	given := groups(s, m)
	for i, g := range given.Items {
		given.Items[i] = scripting.Part(g.(string), s)
	}
	v, err := fn(match, given)
	if err != nil {
		return nil, &scripting.ArgError{Func: "replace", Param: "with", Msg: "failed: " + err.Error()}
	}
	switch v := v.(type) {
	case nil:
		return append(dst, match...), nil
	case string:
		return append(dst, v...), nil
	}
	return nil, &scripting.ArgError{Func: "replace", Param: "with", Msg: "must return a string, or nothing to leave the match unchanged"}
}

// groups returns the groups of a match. A group that did not participate is "".
func groups(s string, m []int) *scripting.List {
	l := &scripting.List{}
	for i := 2; i < len(m); i += 2 {
		g := ""
		if m[i] >= 0 {
			g = s[m[i]:m[i+1]]
		}
		l.Items = append(l.Items, g)
	}
	return l
}

// split behaves like Split of regexp.Regexp: an empty match splits neither at the
// start of the text nor at its end.
func split(re *regex.Regexp, s string, limit scripting.Value, g regex.Guard) (scripting.Value, error) {
	n := maxMatches + 1
	if limit != nil {
		n = int(min(limit.(int64), maxMatches))
		if n < 1 {
			return nil, fmt.Errorf("cannot split into %d parts", limit)
		}
	}
	parts, last := &scripting.List{}, 0
	if n == 1 || s == "" && re.String() != "" {
		parts.Items = append(parts.Items, s)
		return parts, nil
	}
	end := -1
	err := re.Each(s, -1, g, func(m []int) error {
		if len(parts.Items) == n-1 {
			return io.EOF
		}
		if end = m[0]; m[1] != 0 {
			parts.Items = append(parts.Items, s[last:end])
		}
		last = m[1]
		return nil
	})
	if err != nil && err != io.EOF {
		return nil, err
	}
	if end != len(s) {
		parts.Items = append(parts.Items, s[last:])
	}
	if len(parts.Items) > maxMatches {
		return nil, fmt.Errorf("cannot split into more than %d parts", maxMatches)
	}
	return parts, nil
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

// ex returns an example with a result.
func ex(want scripting.Value, args ...scripting.Value) scripting.FunctionExample {
	return scripting.FunctionExample{Args: args, Want: want}
}

// examples returns the examples of a method whose object is created from self.
func examples(self scripting.Value, es ...scripting.FunctionExample) []scripting.FunctionExample {
	for i := range es {
		es[i].Self = []scripting.Value{self}
	}
	return es
}

// checked returns a parameter whose constants are compiled when a script is
// checked.
func checked(p scripting.Param) scripting.Param {
	p.Check = func(src string) error {
		_, err := compile(src, func(src string) (*regex.Regexp, error) { return regex.Compile(src, regex.MaxBytes) })
		return err
	}
	return p
}
