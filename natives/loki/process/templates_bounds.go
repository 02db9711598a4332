package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"

	"github.com/weir-run/weir/engine/regex"
)

const (
	// maxMade is the maximum size of the text that a stage creates from a line,
	// in bytes.
	maxMade = 16 << 20
	// maxItems is the maximum number of items that a template function creates or
	// iterates over.
	maxItems = 100_000
	// expressionBytes is the maximum size of the cache of expressions that
	// templates use.
	expressionBytes = 16 << 20
	// writesPerCheck is the number of writes of a template between two checks of
	// the clock.
	writesPerCheck = 256
)

var (
	errTooLong = fmt.Errorf("the result is longer than %d bytes", maxMade)
	errTooMany = fmt.Errorf("more than %d items", maxItems)
	// errValue means that a template cannot process a value.
	errValue = errors.New("the template failed")
)

// bounded is the writer for the result of a template. It limits the text of one
// row to maxMade bytes and the time to that of its guard.
type bounded struct {
	guard regex.Guard
	text  strings.Builder
	n     int   // writes
	err   error // why the limit was exceeded
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.n++; b.n%writesPerCheck == 0 && b.err == nil {
		b.err = b.guard.Check()
	}
	if b.text.Len()+len(p) > maxMade && b.err == nil {
		b.err = errTooLong
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.text.Write(p)
}

// execute returns the result of a template. The error is errValue or says which
// limit the template exceeded.
func (b *bounded) execute(t *template.Template, data map[string]any) (string, error) {
	b.text.Reset()
	b.err = nil
	err := t.Execute(b, data)
	for _, limit := range []error{errTooLong, errTooMany} {
		if b.err == nil && errors.Is(err, limit) {
			b.err = err
		}
	}
	if _, ok := errors.AsType[*regex.LimitError](err); ok && b.err == nil {
		b.err = err
	}
	switch {
	case b.err != nil:
		return "", b.err
	case err != nil:
		return "", errValue
	}
	return b.text.String(), nil
}

// checkLoops adds an empty text to the body of each loop, so that bounded is
// called in every iteration.
func checkLoops(n parse.Node) {
	list := func(l *parse.ListNode) {
		if l != nil {
			for _, m := range l.Nodes {
				checkLoops(m)
			}
		}
	}
	branch := func(b *parse.BranchNode) {
		list(b.List)
		list(b.ElseList)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		list(n)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
		n.List.Nodes = append([]parse.Node{&parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos}}, n.List.Nodes...)
	}
}

// expressions is the cache of the expressions that templates have used.
var expressions = regex.NewCache(expressionBytes)

// boundedFunctions replace functions of sprig and Promtail that could take
// unlimited time or memory if a number or an expression comes from the line.
func boundedFunctions() template.FuncMap {
	guard := func() regex.Guard { return regex.NewMeter(context.Background()).Guard() }
	find := func(expr, s string, n int) (all [][]int, re *regex.Regexp, err error) {
		if re, err = expressions.Compile(expr); err != nil {
			return nil, nil, err
		}
		err = re.Each(s, n, guard(), func(m []int) error {
			if len(all) == maxItems {
				return errTooMany
			}
			all = append(all, m)
			return nil
		})
		return all, re, limited(re, s, err)
	}
	replace := func(expr, s string, with func(re *regex.Regexp, dst []byte, m []int) []byte) (string, error) {
		re, err := expressions.Compile(expr)
		if err != nil {
			return "", err
		}
		out, err := re.Replace(s, maxMade, guard(), func(dst []byte, m []int) ([]byte, error) { return with(re, dst, m), nil })
		return out, limited(re, s, err)
	}
	match := func(expr, s string) (bool, error) {
		re, err := expressions.Compile(expr)
		if err != nil {
			return false, err
		}
		ok, err := re.Match(s, guard())
		return ok, limited(re, s, err)
	}
	first := func(expr, s string) (string, error) {
		all, _, err := find(expr, s, 1)
		if len(all) == 0 {
			return "", err
		}
		return s[all[0][0]:all[0][1]], nil
	}
	findAll := func(expr, s string, n int) ([]string, error) {
		all, _, err := find(expr, s, n)
		var out []string
		for _, m := range all {
			out = append(out, s[m[0]:m[1]])
		}
		return out, err
	}
	expanded := func(expr, s, with string) (string, error) {
		return replace(expr, s, func(re *regex.Regexp, dst []byte, m []int) []byte { return re.Expand(dst, with, s, m) })
	}
	literally := func(expr, s, with string) (string, error) {
		return replace(expr, s, func(_ *regex.Regexp, dst []byte, _ []int) []byte { return append(dst, with...) })
	}
	split := func(expr, s string, n int) ([]string, error) {
		if n == 0 {
			return nil, nil
		}
		all, _, err := find(expr, s, n)
		if err != nil {
			return nil, err
		}
		if expr != "" && s == "" {
			return []string{""}, nil
		}
		var out []string
		begin, end := 0, 0
		for _, m := range all { // like Split of regexp
			if n > 0 && len(out) == n-1 {
				break
			}
			if end = m[0]; m[1] != 0 {
				out = append(out, s[begin:end])
			}
			begin = m[1]
		}
		if end != len(s) {
			out = append(out, s[begin:])
		}
		return out, nil
	}
	fs := template.FuncMap{
		"regexReplaceAll": expanded, "mustRegexReplaceAll": expanded,
		"regexReplaceAllLiteral": literally, "mustRegexReplaceAllLiteral": literally,
		"regexMatch": match, "mustRegexMatch": match, "regexFind": first, "mustRegexFind": first,
		"regexFindAll": findAll, "mustRegexFindAll": findAll, "regexSplit": split, "mustRegexSplit": split,
	}
	// made returns an error if a function would create a text of n × size bytes
	// that is too long.
	made := func(n, size int) error {
		if n > 0 && size > maxMade/n {
			return errTooLong
		}
		return nil
	}
	replaced := func(s, from, to string, n int) (string, error) {
		if len(to) > len(from) {
			times := strings.Count(s, from)
			if n >= 0 {
				times = min(times, n)
			}
			if err := made(times, len(to)); err != nil {
				return "", err
			}
		}
		return strings.Replace(s, from, to, n), nil
	}
	indent := func(spaces int, s string) (string, error) {
		if err := made(strings.Count(s, "\n")+1, spaces); err != nil {
			return "", err
		}
		pad := strings.Repeat(" ", max(0, spaces))
		return pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
	}
	all := sprig.TxtFuncMap()
	count := func(from, to, step int) error {
		if d := int64(to)/2 - int64(from)/2; step == 0 || max(d, -d)/max(int64(step), -int64(step)) > maxItems/2 {
			return errTooMany
		}
		return nil
	}
	maps.Copy(fs, template.FuncMap{
		"Replace": replaced,
		"replace": func(from, to, s string) (string, error) { return replaced(s, from, to, -1) },
		"indent":  indent,
		"nindent": func(spaces int, s string) (string, error) {
			out, err := indent(spaces, s)
			return "\n" + out, err
		},
		"repeat": func(n int, s string) (string, error) {
			if err := made(n, len(s)); err != nil {
				return "", err
			}
			return strings.Repeat(s, n), nil
		},
		"until": func(n int) ([]int, error) {
			if err := count(0, n, 1); err != nil {
				return nil, err
			}
			return all["until"].(func(int) []int)(n), nil
		},
		"untilStep": func(start, stop, step int) ([]int, error) {
			if step != 0 { // sprig creates no items if the step is 0
				if err := count(start, stop, step); err != nil {
					return nil, err
				}
			}
			return all["untilStep"].(func(int, int, int) []int)(start, stop, step), nil
		},
		"seq": func(ps ...int) (string, error) {
			start, stop, step := 0, 0, 1
			switch len(ps) {
			case 1:
				stop = ps[0]
			case 2:
				start, stop = ps[0], ps[1]
			case 3:
				start, step, stop = ps[0], ps[1], ps[2]
			}
			if step != 0 {
				if err := count(start, stop, step); err != nil {
					return "", err
				}
			}
			return all["seq"].(func(...int) string)(ps...), nil
		},
		"randBytes": func(n int) (string, error) {
			if err := made(max(n, 0), 2); err != nil {
				return "", err
			}
			return all["randBytes"].(func(int) (string, error))(n)
		},
	})
	for _, name := range []string{"randAlpha", "randAlphaNum", "randAscii", "randNumeric"} {
		fn := all[name].(func(int) string)
		fs[name] = func(n int) (string, error) {
			if n > maxItems {
				return "", errTooMany
			}
			return fn(n), nil
		}
	}
	return fs
}

// limited replaces the error of a text that takes too long by the error of the
// limit.
func limited(re *regex.Regexp, s string, err error) error {
	if err == nil || errors.Is(err, errTooMany) {
		return err
	}
	if _, ok := errors.AsType[*regex.LimitError](err); ok {
		return err
	}
	return &regex.LimitError{Expr: re.String(), Bytes: len(s), Limit: err.Error()}
}
