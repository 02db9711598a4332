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
	// maxMade is how long what a stage makes of a line may be, in bytes.
	maxMade = 16 << 20
	// maxItems is how many items a function of templates makes, or goes over.
	maxItems = 100_000
	// expressionBytes is what the expressions take that templates are remembered
	// for.
	expressionBytes = 16 << 20
	// writesPerCheck is how often a template writes between looks at the clock.
	writesPerCheck = 256
)

var (
	errTooLong = fmt.Errorf("the result is longer than %d bytes", maxMade)
	errTooMany = fmt.Errorf("more than %d items", maxItems)
	// errValue is that a template cannot work with a value.
	errValue = errors.New("the template failed")
)

// bounded is what a template writes to: the text of one row, which may become
// maxMade long and take as long as its guard allows.
type bounded struct {
	guard regex.Guard
	text  strings.Builder
	n     int   // writes
	err   error // why it is over
}

// Write makes bounded an io.Writer.
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

// execute returns what a template makes. The error is errValue, or that it made
// too much.
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

// checkLoops makes every round of a loop write something, if only an empty text,
// so that bounded sees it.
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

// expressions are those that templates used.
var expressions = regex.NewCache(expressionBytes)

// boundedFunctions are functions of sprig's and Promtail's that could take time or
// memory without end, by a number or an expression that comes from the line.
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
		for _, m := range all { // as Split of regexp does
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
	// made is what a text may become that a function makes n × size bytes of.
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
			if step != 0 { // sprig makes none of no steps
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

// limited makes the error of a text that takes too long one of the limit.
func limited(re *regex.Regexp, s string, err error) error {
	if err == nil || errors.Is(err, errTooMany) {
		return err
	}
	if _, ok := errors.AsType[*regex.LimitError](err); ok {
		return err
	}
	return &regex.LimitError{Expr: re.String(), Bytes: len(s), Limit: err.Error()}
}
