package js

import (
	"errors"
	"regexp"

	"github.com/weir-run/weir/scripting"
)

// The messages of package scripting about definitions use Lua syntax. This file
// converts them to JavaScript.
var words = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\bweir\.(arg|state)\b`), "$1"},
	{regexp.MustCompile(`\bweir\.transform\b`), "defineTransform"},
	{regexp.MustCompile(`\bweir\.source\b`), "defineSource"},
	{regexp.MustCompile(`\bweir\.sink\b`), "defineSink"},
	{regexp.MustCompile(`\b(arg|state)\.(\w+) ?\{\}`), "$1.$2()"},
	{regexp.MustCompile(`\b(arg|state)\.(\w+) (\{[^{}]*(?:\{[^{}]*\})?[^{}]*\})`), "$1.$2($3)"},
	{regexp.MustCompile(`\ba table\b`), "an object"},
	{regexp.MustCompile(`^cannot use nil\b`), "cannot use undefined"},
	{regexp.MustCompile(`\{ ("[^"{}]*"(?:, "[^"{}]*")*(?:, …)?) \}`), "[$1]"},
	{regexp.MustCompile(`\["([^"]*)"\] = `), `"$1": `},
	{regexp.MustCompile(`function\(([^)]*)\) … end`), "($1) => { … }"},
	{regexp.MustCompile(`\b(max_bytes|max_value|on_full)\b`), ""},
}

// written matches assignments in the examples of messages.
var written = regexp.MustCompile(`(write|such as|it must be|is) .*`)

var assigned = regexp.MustCompile(`\b(\w+) = `)

// inJavaScript converts a message to JavaScript syntax.
func inJavaScript(msg string) string {
	for _, w := range words {
		if w.to == "" {
			msg = w.re.ReplaceAllStringFunc(msg, scripting.CamelCase)
			continue
		}
		msg = w.re.ReplaceAllString(msg, w.to)
	}
	return written.ReplaceAllStringFunc(msg, func(s string) string { return assigned.ReplaceAllString(s, "$1: ") })
}

// reworded returns an error with its messages in JavaScript syntax.
func reworded(err error) error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range many.Unwrap() {
			errs = append(errs, reworded(e))
		}
		return errors.Join(errs...)
	}
	e, ok := err.(*scripting.Error)
	if !ok {
		return errors.New(inJavaScript(err.Error()))
	}
	out := *e
	out.Err = errors.New(inJavaScript(e.Err.Error()))
	out.Hint = inJavaScript(e.Hint)
	return &out
}
