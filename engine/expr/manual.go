package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/parser/operator"

	"github.com/weir-run/weir/engine/manual"
)

// Manual describes the language, generated from its tables. A test evaluates
// each example in it. A section IN SCRIPTS, from the languages of scripts,
// follows it.
func Manual() string {
	var b strings.Builder
	b.WriteString(manualHead)
	for _, v := range variables {
		of := "samples"
		switch {
		case v.samples && v.logs:
			of = "samples and log lines"
		case v.logs:
			of = "log lines"
		}
		e := v.entry
		e.form = fmt.Sprintf("%s (%s)", v.name, of)
		e.write(&b)
	}
	b.WriteString(manualTypes)
	for _, e := range operators {
		e.write(&b)
	}
	b.WriteString(manualPrecedence)
	for _, level := range precedence() {
		fmt.Fprintf(&b, "  %s\n", strings.Join(level, "   "))
	}
	b.WriteString("\n")
	for _, e := range precedenceExamples {
		e.write(&b, 2)
	}
	b.WriteString(manualFunctions)
	for _, f := range functions {
		f.write(&b)
	}
	b.WriteString(manualTail)
	return b.String()
}

const manualHead = `Expressions choose, change and route samples and log lines in one line of text.
They are used in these places:

  expr.filter       drop, keep                     true or false
  expr.route        route "…" { when }             true or false
  expr.set          name, line, label, meta        a string
                    value                          a number
  scripts           see IN SCRIPTS, below

In a config, an expression is a string. Use single quotes inside of it, or write the
string between backquotes:

  expr.filter "default" {
    drop       = "name startsWith 'go_' && labels.job != 'api'"
    forward_to = [expr.set.default.receiver]
  }

  expr.set "default" {
    value = ` + "`name endsWith \"_ms\" ? value / 1000 : value`" + `

    label "team" {
      value = ` + "`labels.job in [\"api\", \"web\"] ? \"front\" : \"back\"`" + `
    }

    forward_to = [prometheus.echo.default.receiver]
  }

  prometheus.echo "default" { }

The language is a part of expr-lang (https://expr-lang.org). This page lists all of
that part: there are no loops, no variables, and no functions of your own.
'weir check' finds mistakes in expressions, in the config as well as in scripts.

The examples on this page are evaluated on this sample, or on this log line if they
use what only lines have:

  http_requests_total{job="api",path="/users/42",status="500"} 12
      a counter, with the time 1700000000000
  {job="api",path="/users/42",status="500"} GET /cart 502
      with the metadata trace_id="4bf92f" and the same time

  args: keep = ["api", "web"]

NAMES

`

const manualTypes = `
An expression that uses name, value or type is for samples, one that uses line or
meta for log lines; one that uses neither is for both.

VALUES

A number is written 12, 1.5, 1e6 or 0xff. A string is written "text" or 'text', with
escapes such as \n, \" and \\, or between backquotes without escapes. A list is
written [1, 2, 3], a map {"a": 1}. true, false and nil are values as well. Text
between /* and */, or after //, is a comment.

Whole numbers and numbers with a fraction can be mixed. Nothing else is converted
by itself: a label is a string, so write int(labels.status) >= 500.

A label or metadata that is missing is "", never nil: compare it with "". nil is
what first, last and find return when there is no element, and what a map that is
written in the expression has under a missing name.

Staleness markers and native histograms have no value to compare. In a predicate,
the parts joined by && that use value are left out for them, and if there are no
other parts, they are not judged: filters keep them, and expr.route sends them on to
forward_to or, for a staleness marker, wherever its series went before.

Expressions do not look into JSON or logfmt. Extract the fields into labels or
metadata first, with loki.process, or use batch:json in a script. Names such as
json.status in logs.to_metrics are names of fields, and not expressions.

OPERATORS

`

const manualPrecedence = `
PRECEDENCE

Operators that bind more tightly come first. Operators on the same line have the
same precedence and are evaluated from left to right, powers from right to left.
Use brackets ( ) for another order.

`

const manualFunctions = `
FUNCTIONS

`

const manualTail = `
The functions that take a predicate cannot be nested in each other.

LIMITS AND FAILURES

An expression has 8 KiB at most, a range 1024 elements, and what replace returns
64 KiB. Brackets nest 100 deep.

A mistake in an expression of the config is reported with its place, and the config
is refused. In a script, 'weir check' and 'weir test' report it, and a hook that
uses the expression fails.

Some expressions fail only on some records: int() of a label that is not a number,
for example. The components expr.* then pass the sample or line on unchanged, count
it in weir_expr_errors_total and report it in their health. In a script the hook
fails, and script.on_error decides what becomes of the records.

The parts joined by && that use only name, type, labels and args are evaluated once
for each series or stream and remembered. Write them first.
`

// precedenceExamples show the precedence of operators.
var precedenceExamples = ex(
	`1 + 2 * 3`, "7",
	`(1 + 2) * 3`, "9",
	`-2 ** 2`, "-4",
	`true or false and false`, "true",
	`(true or false) and false`, "false",
)

// precedence returns the operators by precedence, highest first.
func precedence() (levels [][]string) {
	by := map[int][]string{}
	for op, o := range operator.Binary {
		by[o.Precedence] = append(by[o.Precedence], op)
	}
	for op, o := range operator.Unary {
		by[o.Precedence] = append(by[o.Precedence], op+"a")
		if op == "not" {
			by[o.Precedence][len(by[o.Precedence])-1] = "not a"
		}
	}
	order := make([]int, 0, len(by))
	for p := range by {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b int) int { return b - a })
	levels = append(levels, []string{".", "?.", "[ ]", "f(x)"})
	for _, p := range order {
		slices.SortFunc(by[p], func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
		levels = append(levels, by[p])
	}
	return append(levels, []string{"? :"})
}

// rank is the position of an operator in the table.
func rank(op string) int {
	for i, e := range operators {
		if e.name == op {
			return i
		}
	}
	return len(operators)
}

// write writes an entry: its syntax, its description and its examples.
func (e entry) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %s\n", cmp.Or(e.form, e.name))
	manual.WriteParagraph(b, "      ", e.doc)
	for _, x := range e.examples {
		x.write(b, 10)
	}
}

func (x example) write(b *strings.Builder, indent int) {
	fmt.Fprintf(b, "%*s%-*s → %s\n", indent, "", 44-indent, x.source, x.result)
}
