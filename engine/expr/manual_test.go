package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser/operator"
	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/batch"
)

// shown returns the result of an expression on the sample or the line of the
// manual, as the manual writes it.
func shown(src string) string {
	var b batch.Builder
	b.Set("job", "api")
	b.Set("path", "/users/42")
	b.Set("status", "500")
	stream := b.Series(nil)
	b.Set(batch.NameLabel, "http_requests_total")
	series := b.Series(nil)
	series.SetMeta(&batch.Metadata{Type: model.MetricTypeCounter})
	x := Sample{Series: series, Value: 12, Time: 1700000000000}
	args := map[string]any{"keep": []string{"api", "web"}}

	compile := Compile
	if _, err := Compile(src, Bool, args); err != nil && asError(err).other {
		compile = CompileLogs
		x = Sample{Series: stream, Time: x.Time, Line: "GET /cart 502", Meta: []batch.Label{{Name: "trace_id", Value: "4bf92f"}}}
	}
	var first error
	for _, kind := range []Kind{Bool, Number, String} {
		p, err := compile(src, kind, args)
		if err == nil {
			switch kind {
			case Bool:
				var v bool
				if v, err = p.Bool(&x); err == nil {
					return strconv.FormatBool(v)
				}
			case Number:
				var v float64
				if v, err = p.Float(&x); err == nil {
					return fmt.Sprint(v)
				}
			case String:
				var v string
				if v, err = p.Text(&x); err == nil {
					return strconv.Quote(v)
				}
			}
		}
		// Of a result whose type is known when it is evaluated, the last one fits.
		if e, ok := errors.AsType[*Error](err); ok && strings.HasPrefix(e.Msg, "it must be ") {
			continue
		}
		first = err
		break
	}
	return "error: " + asError(first).Msg
}

// TestManualExamples evaluates every line of the manual that shows a result.
func TestManualExamples(t *testing.T) {
	n := 0
	for line := range strings.Lines(Manual()) {
		src, want, ok := strings.Cut(line, " → ")
		if !ok {
			continue
		}
		n++
		if got := shown(strings.TrimSpace(src)); got != strings.TrimSpace(want) {
			t.Errorf("%s: got %s, want %s", strings.TrimSpace(src), got, strings.TrimSpace(want))
		}
	}
	if n < 100 {
		t.Errorf("the manual has %d examples, want more than 100", n)
	}
}

// TestManualComplete: each name, operator and function is described with an
// example that uses it.
func TestManualComplete(t *testing.T) {
	check := func(e entry, uses string) {
		t.Helper()
		if e.doc == "" || !strings.HasSuffix(e.doc, ".") && !strings.HasSuffix(e.doc, ")") {
			t.Errorf("%s: the description is not a sentence: %q", e.name, e.doc)
		}
		re := regexp.MustCompile(uses)
		for _, x := range e.examples {
			if re.MatchString(x.source) && !strings.HasPrefix(x.result, "error") {
				return
			}
		}
		t.Errorf("%s: no example uses it", e.name)
	}
	for _, v := range variables {
		check(v.entry, `\b`+v.name+`\b`)
	}
	for _, f := range functions {
		check(f.entry, `\b`+f.name+`\(`)
		if _, ok := builtin.Index[f.name]; !ok {
			t.Errorf("%s is not a function of expr-lang", f.name)
		}
	}
	for _, e := range operators {
		switch e.name {
		case "? :":
			check(e, `\?.*:`)
		case "[ ]":
			check(e, `\w\[`)
		default:
			check(e, regexp.QuoteMeta(e.name))
		}
	}
	spellings := map[string]string{"&&": "and", "||": "or", "!": "not", "^": "**"}
	for _, ops := range []map[string]operator.Operator{operator.Binary, operator.Unary} {
		for op := range ops {
			if other, ok := spellings[op]; ok {
				op = other
			}
			if rank(op) == len(operators) {
				t.Errorf("operator %s is not described", op)
			}
		}
	}
	for name := range refused {
		if lookup(name) != nil {
			t.Errorf("function %s is described, and refused", name)
		}
	}
}

// TestManualLayout: the lines of the manual fit into a terminal.
func TestManualLayout(t *testing.T) {
	for line := range strings.Lines(Manual()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 84 && !strings.Contains(line, "error: ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
