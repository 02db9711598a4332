package stdlib

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/scripting"
)

// maxParts is the maximum number of parts of a split string.
const maxParts = 100_000

func textModule() *scripting.Module {
	s := text("s", "The text.")
	result := scripting.Result{Kind: scripting.KindString, Doc: "The text."}
	fails := scripting.Result{Kind: scripting.KindString, Doc: "The text.", Fails: true}
	truth := scripting.Result{Kind: scripting.KindBool, Doc: "Whether the condition holds."}
	cutset := scripting.Param{Name: "chars", Kind: scripting.KindString, Doc: "The characters to remove; white space by default.", Optional: true}
	width := scripting.Param{Name: "width", Kind: scripting.KindInt, Doc: "The minimum number of characters of the result."}
	fill := scripting.Param{Name: "fill", Kind: scripting.KindString, Doc: "The character to fill with; a space by default.", Optional: true}
	// of returns a function with a string and one further parameter.
	of := func(name, doc string, other scripting.Param, res scripting.Result, fn func(s, other string) scripting.Value, es ...scripting.FunctionExample) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{s, other}, Result: res, Examples: es,
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				o, _ := a[1].(string)
				return fn(a[0].(string), o), nil
			}}
	}
	trim := func(by func(string, func(rune) bool) string) func(s, chars string) scripting.Value {
		return func(s, chars string) scripting.Value {
			if chars == "" {
				chars = " \t\r\n\v\f\u0085\u00a0"
			}
			return by(s, oneOf(chars))
		}
	}
	pad := func(name, doc string, join func(s, fill string) string, es ...scripting.FunctionExample) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{s, width, fill}, Result: fails, Examples: es,
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				with, _ := a[2].(string)
				fill, err := filling(a[0].(string), a[1].(int64), with)
				if err != nil {
					return nil, err
				}
				return join(a[0].(string), fill), nil
			}}
	}
	return &scripting.Module{
		Name: "text",
		Doc:  "String functions without patterns. A character is a Unicode code point. Results are at most 8 MiB.",
		Funcs: []scripting.Function{
			of("trim", "Removes characters from both ends.", cutset, result, trim(strings.TrimFunc),
				ex("a b", "  a b\n"), ex("a", "--a-", "-")),
			of("trim_left", "Removes characters from the beginning.", cutset, result, trim(strings.TrimLeftFunc), ex("a ", "  a ")),
			of("trim_right", "Removes characters from the end.", cutset, result, trim(strings.TrimRightFunc), ex(" a", " a  ")),
			of("trim_prefix", "Removes a prefix, at most once.", text("prefix", "The prefix to remove."), result,
				func(s, p string) scripting.Value { return strings.TrimPrefix(s, p) }, ex("users", "/users", "/"), ex("users", "users", "/")),
			of("trim_suffix", "Removes a suffix, at most once.", text("suffix", "The suffix to remove."), result,
				func(s, p string) scripting.Value { return strings.TrimSuffix(s, p) }, ex("http_requests", "http_requests_total", "_total")),
			of("starts_with", "Reports whether the text begins with a prefix.", text("prefix", "The prefix."), truth,
				func(s, p string) scripting.Value { return strings.HasPrefix(s, p) }, ex(true, "go_goroutines", "go_"), ex(false, "up", "go_")),
			of("ends_with", "Reports whether the text ends with a suffix.", text("suffix", "The suffix."), truth,
				func(s, p string) scripting.Value { return strings.HasSuffix(s, p) }, ex(true, "requests_total", "_total")),
			of("contains", "Reports whether the text contains another string.", text("part", "The string to search for."), truth,
				func(s, p string) scripting.Value { return strings.Contains(s, p) }, ex(true, "GET /users", "/users"), ex(false, "a.b", "a%.b")),
			of("count", "Counts the non-overlapping occurrences of a string in the text.", text("part", "The string to count; it must not be empty."),
				scripting.Result{Kind: scripting.KindInt, Doc: "The number of occurrences."},
				func(s, p string) scripting.Value {
					if p == "" {
						return int64(0)
					}
					return int64(strings.Count(s, p))
				}, ex(int64(2), "/a/b", "/")),
			{
				Name: "split",
				Doc:  "Splits the text at a separator. Empty parts are kept.",
				Params: []scripting.Param{s, text("separator", "The separator; it must not be empty."),
					{Name: "max", Kind: scripting.KindInt, Doc: "The maximum number of parts; the last part contains the rest.", Optional: true}},
				Result: scripting.Result{Kind: scripting.KindList, Doc: "The parts.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					return splitText(a[0].(string), a[1].(string), a[2])
				},
				Examples: []scripting.FunctionExample{
					ex(list("a", "", "b"), "a,,b", ","), ex(list("k", "v=w"), "k=v=w", "=", int64(2)),
					{Args: []scripting.Value{"a", ""}, Err: "empty separator"},
				},
			},
			{
				Name: "fields", Doc: "Splits the text at white space. Empty parts are removed.", Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindList, Doc: "The parts.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					return parts(strings.Fields(a[0].(string)))
				},
				Examples: []scripting.FunctionExample{ex(list("a", "b"), " a \t b\n"), ex(list(), " ")},
			},
			{
				Name: "replace", Doc: "Replaces all occurrences of a string.",
				Params: []scripting.Param{s, text("from", "The string to replace; it must not be empty."), text("to", "The replacement.")},
				Result: fails,
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					return replaceText(a[0].(string), a[1].(string), a[2].(string))
				},
				Examples: []scripting.FunctionExample{ex("a_b_c", "a.b.c", ".", "_"), {Args: []scripting.Value{"a", "", "b"}, Err: "empty text"}},
			},
			pad("pad_left", "Pads the text at the beginning.", func(s, fill string) string { return fill + s }, ex("007", "7", int64(3), "0"), ex("abc", "abc", int64(2))),
			pad("pad_right", "Pads the text at the end.", func(s, fill string) string { return s + fill }, ex("a  ", "a", int64(3))),
			{
				Name: "truncate", Doc: "Truncates the text to a number of characters.",
				Params: []scripting.Param{s, {Name: "max", Kind: scripting.KindInt, Doc: "The maximum number of characters, including the suffix."},
					{Name: "suffix", Kind: scripting.KindString, Doc: "A suffix for truncated text; nothing by default.", Optional: true}},
				Result: result,
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					suffix, _ := a[2].(string)
					return truncate(a[0].(string), a[1].(int64), suffix), nil
				},
				Examples: []scripting.FunctionExample{ex("äb", "äbc", int64(2)), ex("ab…", "abcdef", int64(3), "…"), ex("ab", "ab", int64(3), "…")},
			},
			{
				Name: "length", Doc: "Counts characters; # in Lua counts bytes.", Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "The number of characters."},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					return int64(utf8.RuneCountInString(a[0].(string))), nil
				},
				Examples: []scripting.FunctionExample{ex(int64(3), "añb")},
			},
			{
				Name: "lower", Doc: "Converts the text to lower case; supports all of Unicode.", Params: []scripting.Param{s}, Result: result,
				Fn:       func(a []scripting.Value) (scripting.Value, error) { return strings.ToLower(a[0].(string)), nil },
				Examples: []scripting.FunctionExample{ex("äb", "ÄB")},
			},
			{
				Name: "upper", Doc: "Converts the text to upper case; supports all of Unicode.", Params: []scripting.Param{s}, Result: result,
				Fn:       func(a []scripting.Value) (scripting.Value, error) { return strings.ToUpper(a[0].(string)), nil },
				Examples: []scripting.FunctionExample{ex("ÄB", "äb")},
			},
			{
				Name: "template", Doc: "Inserts values into a template: {name} is replaced with the value of name, and {{ with a brace. A missing value is an error.",
				Params: []scripting.Param{text("template", "The template, with names in braces."), {Name: "values", Kind: scripting.KindMap, Doc: "The values: strings, numbers or booleans."}},
				Result: fails,
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					return fillTemplate(a[0].(string), a[1].(*scripting.Map))
				},
				Examples: []scripting.FunctionExample{
					ex("GET /users took 0.5 s {}", "{method} {path} took {seconds} s {{}", mapOf("method", "GET", "path", "/users", "seconds", 0.5)),
					{Args: []scripting.Value{"{a}", mapOf()}, Err: "no value with that name"},
					{Args: []scripting.Value{"{a", mapOf("a", "b")}, Err: "is not closed"},
				},
			},
			{
				Name: "label_name", Doc: "Converts text to a label name: each character other than a letter, a digit or an underscore becomes an underscore.",
				Params: []scripting.Param{s}, Result: result,
				Fn:       func(a []scripting.Value) (scripting.Value, error) { return nameOf(a[0].(string), false), nil },
				Examples: []scripting.FunctionExample{ex("app_kubernetes_io_name", "app.kubernetes.io/name"), ex("_1st", "1st"), ex("_", "")},
			},
			{
				Name: "metric_name", Doc: "Converts text to a metric name, like label_name, but keeps colons.",
				Params: []scripting.Param{s}, Result: result,
				Fn:       func(a []scripting.Value) (scripting.Value, error) { return nameOf(a[0].(string), true), nil },
				Examples: []scripting.FunctionExample{ex("queue_depth:sum", "queue.depth:sum")},
			},
			{
				Name: "valid", Doc: "Replaces invalid UTF-8, which endpoints reject.",
				Params: []scripting.Param{s, {Name: "with", Kind: scripting.KindString, Doc: "The replacement, U+FFFD by default.", Optional: true}},
				Result: fails,
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					with, ok := a[1].(string)
					if !ok {
						with = "\ufffd"
					}
					if len(a[0].(string))*max(len(with), 1) > scripting.MaxString {
						return nil, errLong("replace")
					}
					return strings.ToValidUTF8(a[0].(string), with), nil
				},
				Examples: []scripting.FunctionExample{ex("a?b", "a\xffb", "?")},
			},
		},
	}
}

func parts(ss []string) (scripting.Value, error) {
	if len(ss) > maxParts {
		return nil, fmt.Errorf("cannot split into more than %d parts", maxParts)
	}
	return stringList(ss), nil
}

func splitText(s, separator string, limit scripting.Value) (scripting.Value, error) {
	if separator == "" {
		return nil, errors.New("cannot split at an empty separator")
	}
	n := int64(maxParts + 1)
	if l, ok := limit.(int64); ok {
		if l < 1 {
			return nil, fmt.Errorf("cannot split into %d parts", l)
		}
		n = min(n, l)
	}
	return parts(strings.SplitN(s, separator, int(n)))
}

func replaceText(s, from, to string) (scripting.Value, error) {
	if from == "" {
		return nil, errors.New("cannot replace an empty text")
	}
	if len(s)+strings.Count(s, from)*(len(to)-len(from)) > scripting.MaxString {
		return nil, errLong("replace")
	}
	return strings.ReplaceAll(s, from, to), nil
}

// filling returns the characters that s lacks to reach a width.
func filling(s string, width int64, with string) (string, error) {
	if with == "" {
		with = " "
	}
	if width > scripting.MaxString {
		return "", errLong("pad")
	}
	missing := int(width) - utf8.RuneCountInString(s)
	if missing <= 0 {
		return "", nil
	}
	chars := utf8.RuneCountInString(with)
	if (missing/chars+1)*len(with)+len(s) > scripting.MaxString {
		return "", errLong("pad")
	}
	return strings.Repeat(with, missing/chars) + truncate(with, int64(missing%chars), ""), nil
}

func truncate(s string, limit int64, suffix string) string {
	if limit < 0 {
		limit = 0
	}
	if int64(utf8.RuneCountInString(s)) <= limit {
		return s
	}
	keep := limit - int64(utf8.RuneCountInString(suffix))
	if keep < 0 {
		keep, suffix = limit, ""
	}
	for i := range s {
		if keep == 0 {
			return s[:i] + suffix
		}
		keep--
	}
	return s
}

func fillTemplate(t string, values *scripting.Map) (scripting.Value, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(t, '{')
		if i < 0 {
			b.WriteString(t)
			return b.String(), nil
		}
		b.WriteString(t[:i])
		if t = t[i+1:]; strings.HasPrefix(t, "{") {
			b.WriteByte('{')
			t = t[1:]
			continue
		}
		name, rest, ok := strings.Cut(t, "}")
		if !ok {
			return nil, fmt.Errorf("cannot fill in %q: the { is not closed", "{"+truncate(t, 40, "…"))
		}
		v, ok := values.Get(name)
		if !ok {
			return nil, fmt.Errorf("cannot fill in {%s}: there is no value with that name", truncate(name, 40, "…"))
		}
		s, err := plainText(v)
		if err != nil {
			return nil, fmt.Errorf("cannot fill in {%s}: %w", truncate(name, 40, "…"), err)
		}
		b.WriteString(s)
		if t = rest; b.Len() > scripting.MaxString {
			return nil, errLong("fill in a template")
		}
	}
}

// plainText formats a single value as text.
func plainText(v scripting.Value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int64, float64:
		s, err := encode(v, nil)
		if err != nil {
			return "", err
		}
		return s.(string), nil
	}
	if v == scripting.Null {
		return "", nil
	}
	return "", errors.New("it is not a string, a number or a boolean")
}

func nameOf(s string, colons bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '_', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', colons && r == ':':
			b.WriteRune(r)
		case r >= '0' && r <= '9':
			if i == 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}

// oneOf returns a function that reports whether a character is one of chars. It
// uses a set for long chars, because searching chars for each character would
// take chars × text.
func oneOf(chars string) func(rune) bool {
	if len(chars) <= 64 {
		return func(c rune) bool { return strings.ContainsRune(chars, c) }
	}
	set := map[rune]bool{}
	for _, c := range chars {
		set[c] = true
	}
	return func(c rune) bool { return set[c] }
}
