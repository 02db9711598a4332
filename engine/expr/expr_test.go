package expr_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

func series(typ, name string, kv ...string) *batch.Series {
	var b batch.Builder
	b.Set(batch.NameLabel, name)
	for i := 0; i < len(kv); i += 2 {
		b.Set(kv[i], kv[i+1])
	}
	s := b.Series(nil)
	if typ != "" {
		s.SetMeta(&batch.Metadata{Type: model.MetricType(typ)})
	}
	return s
}

var testArgs = map[string]any{
	"keep": []string{"api", "web"}, "region": "eu", "limit": 3, "ratio": 0.5, "on": true,
	"wait": 90 * time.Second, "names": map[string]string{"api": "frontend"}, "none": []string{},
	"nested": map[string]any{"x": 1}, "secret": struct{ v string }{"x"}, "mixed": []any{1, "a"},
}

func TestBool(t *testing.T) {
	x := expr.Sample{Series: series("counter", "http_requests_total", "job", "api", "code", "503", "path", "/users/42"), Value: 12, Time: 1700000000000}
	f := func(src string, want bool) {
		t.Helper()
		p, err := expr.Compile(src, expr.Bool, testArgs)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			return
		}
		got, err := p.Bool(&x)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", src, got, err, want)
		}
		// The label part and the rest together are the whole.
		switch v := p.LabelPart(&x); {
		case v == expr.False && want, v == expr.True && !p.HasRest() && !want:
			t.Errorf("%s: label part says %v, want %v", src, v, want)
		case v == expr.True && p.HasRest():
			if got, err := p.Rest(&x); err != nil || got != want {
				t.Errorf("%s: rest says %v, %v, want %v", src, got, err, want)
			}
		}
	}

	// names, labels, types
	f(`name == "http_requests_total"`, true)
	f(`name startsWith "http_" && name endsWith "_total" && name contains "requests"`, true)
	f(`labels.job == "api"`, true)
	f(`labels["job"] != "api"`, false)
	f(`labels?.job == "api"`, true)
	f(`"api" == labels.job`, true)
	f(`labels.missing == ""`, true)
	f(`labels.__name__ == ""`, true)
	f(`labels["__na" + "me__"] == ""`, true)
	f(`"job" in labels and "nope" not in labels and "__name__" not in labels`, true)
	f(`type == "counter"`, true)
	f(`len(labels) == 3`, true)
	f(`labels.job in ["web", "api"]`, true)
	f(`labels.job not in ["web", "api"]`, false)
	f(`labels.path matches "^/users/\\d+$"`, true)
	f("labels.path matches `^/users/\\d+$`", true)
	f(`labels.path matches "^/" + args.region`, false)
	f(`not (labels.job == "web" or labels.job == "db")`, true)
	f(`labels.job < labels.path`, false)

	// args are constants
	f(`labels.job in args.keep`, true)
	f(`labels.job in args.none`, false)
	f(`labels.job in args.names && args.names.api == "frontend" && args.names[labels.job] == "frontend"`, true)
	f(`args.region == "eu" && args["region"] != "us" && args.on`, true)
	f(`value > args.limit && value * args.ratio == 6 && args.wait == 90`, true)
	f(`any(args.keep, # == labels.job)`, true)
	f(`any(args.keep, labels.job startsWith #)`, true)
	f(`args.nested.x == 1`, true)

	// values and time
	f(`value == 12 && value != 13 && value >= 12 && value <= 12 && value > 11 && value < 13`, true)
	f(`12 < value`, false)
	f(`value in [1, 12.0]`, true)
	f(`value in 10..20`, true)
	f(`time > 1600000000000 && time % 1000 == 0`, true)
	f(`-value == -12 && abs(-value) == 12 && floor(value / 5) == 2 && ceil(value / 5) == 3 && round(2.5) == 3`, true)
	f(`max(value, 3) == 12 && min(value, 3) == 3 && max(1, 2) == 2`, true)
	f(`value ** 2 == 144 && value ^ 2 == 144 && 7 % 4 == 3 && value - 2 == 10 && value + 1 == 13`, true)
	f(`int(labels.code) >= 500 && float(labels.code) / 2 == 251.5 && int(value) % 5 == 2`, true)
	f(`string(value) == "12" && string(1 + 2) == "3" && string(true) == "true"`, true)
	f(`(value > 5 ? "big" : "small") == "big"`, true)
	f(`(labels.job == "web" ? 1 : value) == 12`, true)

	// text
	f(`upper(labels.job) == "API" && lower("A") == "a" && trim("  x ") == "x" && trim("xax", "x") == "a"`, true)
	f(`trimPrefix(name, "http_") == "requests_total" && trimSuffix(name, "_total") == "http_requests"`, true)
	f(`len("äö") == 2 && indexOf(name, "_") == 4 && lastIndexOf(name, "_") == 13`, true)
	f(`replace(labels.path, "/", ".") == ".users.42"`, true)
	f(`labels.job + ":" + labels.code == "api:503"`, true)
	f(`split(labels.path, "/")[1] == "users"`, true)
	f(`labels.path[1:] == "users/42"`, true)

	// what would fail is not reached
	f(`labels.zone != "" && int(labels.zone) > 3`, false)
	f(`value > 100 && int(labels.job) > 3`, false)
}

func TestBoolFails(t *testing.T) {
	x := expr.Sample{Series: series("", "m", "job", "api"), Value: 1}
	f := func(src, want string) {
		t.Helper()
		p, err := expr.Compile(src, expr.Bool, testArgs)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		for range 2 { // a failure leaves nothing behind
			if _, err := p.Bool(&x); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %v, want %q", src, err, want)
			}
		}
		if v := p.LabelPart(&x); v == expr.False {
			t.Errorf("%s: the label part hides the failure", src)
		}
	}
	f(`int(labels.job) > 1`, `int("api"): it is no whole number (1:1)`)
	f(`value > 0 && int(labels.job) > 1`, `(1:14)`)
	f(`int(labels.job) > value && labels.job == "web"`, `int("api")`)
	f(`1 % int(value - 1) == 0`, "integer divide by zero")
	f(`split(labels.job, "")[9] == "x"`, "index out of range")
	f(`replace(replace(replace("`+strings.Repeat("a", 100)+`", "a", "`+strings.Repeat("b", 100)+`"), "b", "`+strings.Repeat("c", 100)+`"), "", "x") == ""`, "64 KiB")
	f(`first(args.mixed)`, "it must be true or false, not 1")
}

func TestFloatAndText(t *testing.T) {
	x := expr.Sample{Series: series("gauge", "m", "job", "api"), Value: 5}
	num := func(src string, want float64) {
		t.Helper()
		p, err := expr.Compile(src, expr.Number, testArgs)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Float(&x); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", src, got, err, want)
		}
	}
	num(`value * 0.001`, 0.005)
	num(`value > 3 ? value : 0`, 5)
	num(`time + 1`, 1)
	num(`42`, 42)
	num(`-max(value, 7)`, -7)
	num(`first(args.mixed)`, 1)
	num(`len(args.keep)`, 2)

	text := func(src, want string) {
		t.Helper()
		p, err := expr.Compile(src, expr.String, testArgs)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Text(&x); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", src, got, err, want)
		}
	}
	text(`name + "_" + type`, "m_gauge")
	text(`string(max(value, 1))`, "5")
	text(`string(max(value, 1000000))`, "1000000") // an int in expr
	text(`labels.job == "api" ? args.region : "x"`, "eu")
}

func TestCompileErrors(t *testing.T) {
	f := func(src string, kind expr.Kind, want string) {
		t.Helper()
		_, err := expr.Compile(src, kind, testArgs)
		if err == nil {
			t.Errorf("%s: compiled, want %q", src, want)
			return
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error\n%v\nwant %q", src, err, want)
		}
	}
	// the place is under the caret
	f(`labels.job == "x" && vaule > 3`, expr.Bool, "unknown name vaule (1:22)\n | labels.job == \"x\" && vaule > 3\n | "+strings.Repeat(" ", 21)+"^")
	f("value > 1 &&\n\tnope == 1", expr.Bool, "(2:2)\n |  nope == 1\n |  ^")
	f("\"ä\" == nope", expr.Bool, "(1:8)")

	f(``, expr.Bool, "it is empty")
	f(`value >`, expr.Bool, "unexpected token EOF (1:7)")
	f(`value > 3)`, expr.Bool, `unexpected token Bracket(")") (1:10)`)
	// what other languages write
	f(`labels.job = "x"`, expr.Bool, `unexpected token Operator("="); use == to compare values (1:12)`)
	f("true &&\n\tname =~ \"ä\"", expr.Bool, `; use matches for a regular expression: name matches "^go_" (2:7)`)
	f(`name !~ "x"`, expr.Bool, `; use matches for a regular expression: not (name matches "^go_")`)
	f(`labels.job === "x"`, expr.Bool, "; write ==")
	f(`value => 3`, expr.Bool, "; write >=")
	f(`value > 1 AND value < 3`, expr.Bool, "; write and, or &&")
	f(`value > 1 OR value < 3`, expr.Bool, "; write or, or ||")
	f(`labels.job <> "x"`, expr.Bool, "; write !=")
	f(`name startswith "x"`, expr.Bool, "; write startsWith")
	f(`name endswith "x"`, expr.Bool, "; write endsWith")
	f(`name like "x"`, expr.Bool, "; use contains, startsWith, endsWith or matches")
	f(`job == "x"`, expr.Bool, "unknown name job; write labels.job (1:1)")
	f(`__name__ == "up"`, expr.Bool, "unknown name __name__; the name of the metric is name (1:1)")
	f(`value`, expr.Bool, "it must be true or false, not a number")
	f(`name`, expr.Number, "it must be a number, not a string")
	f(`value > 1`, expr.String, "it must be a string, not true or false")
	f(`labels`, expr.Bool, "not a map")
	f(`nil`, expr.Bool, "it must be true or false")
	f(`name == 3`, expr.Bool, "mismatched types string and int")
	f(`name > 3`, expr.Bool, "mismatched types")
	f(`labels.a.b == ""`, expr.Bool, "type string has no field b")
	f(`labels.x == nil`, expr.Bool, `a missing label is ""`)
	f(`(labels.x ?? "d") == "d"`, expr.Bool, `the left side of ?? is never nil`)

	// arguments
	f(`args.nope == 1`, expr.Bool, `args has no "nope"; it has keep, limit`)
	f(`args.secret == "x"`, expr.Bool, "args.secret cannot be used in an expression")
	f(`args[name] == 1`, expr.Bool, "args takes a constant name")
	f(`len(args) > 1`, expr.Bool, "args is used by its fields")
	f(`args.region > 3`, expr.Bool, "mismatched types")

	// what the language leaves out
	f(`let x = 1; x > value`, expr.Bool, "let and ; are not supported")
	f(`value > 1; true`, expr.Bool, "let and ; are not supported")
	f(`now() > 1`, expr.Bool, "function now is not supported: an expression sees the time of the record")
	f(`repeat("x", 1000000) == ""`, expr.Bool, "function repeat is not supported")
	f(`nope(1)`, expr.Bool, "unknown function nope (1:1)")
	f(`name()`, expr.Bool, "unknown function name")
	f(`$env.name == "x"`, expr.Bool, "$env is not supported")
	f(`any(1..10, any(1..10, # > 1))`, expr.Bool, "any within a predicate is not supported")
	f(`value in 1..100000`, expr.Bool, "at most 1024 elements")
	f(`value in 1..time`, expr.Bool, "a range takes constant bounds")
	f(`name matches labels.x`, expr.Bool, "matches takes a constant pattern")
	f(`name matches "("`, expr.Bool, "missing closing )")
	f(`name matches "(" + args.region`, expr.Bool, "missing closing )")

	// what would cost the parser its stack
	f(strings.Repeat("(", 9000), expr.Bool, "longer than 8 KiB")
	f(strings.Repeat("(", 101)+"true"+strings.Repeat(")", 101), expr.Bool, "nested more than 100 deep (1:101)")
	f("\xff", expr.Bool, "not valid UTF-8")
}

func TestManyBracketsInText(t *testing.T) {
	if _, err := expr.Compile(`name == "`+strings.Repeat("(", 200)+`" || name == '\'('`, expr.Bool, nil); err != nil {
		t.Error(err)
	}
	deep := strings.Repeat("not ", 2000) + "true"
	if _, err := expr.Compile(deep, expr.Bool, nil); err != nil {
		t.Error(err)
	}
}

func TestLabelPart(t *testing.T) {
	x := expr.Sample{Series: series("", "m", "job", "api"), Value: 1}
	f := func(src string, want expr.Verdict, rest bool) {
		t.Helper()
		p, err := expr.Compile(src, expr.Bool, testArgs)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.LabelPart(&x); got != want || p.HasRest() != rest {
			t.Errorf("%s: got %v, rest %v, want %v, %v", src, got, p.HasRest(), want, rest)
		}
	}
	f(`labels.job == "api"`, expr.True, false)
	f(`labels.job == "web"`, expr.False, false)
	f(`labels.job == "api" && value > 3`, expr.True, true)
	f(`value > 3 && labels.job == "web"`, expr.False, true)
	f(`value > 3 && (name == "m" && (type == "unknown" and args.on)) && time > 0`, expr.True, true)
	f(`value > 3`, expr.True, true)
	f(`labels.job == "web" || value > 3`, expr.True, true)
	f(`int(labels.job) > 3`, expr.Open, false)
	// Not past what may fail: expr would have failed first.
	f(`1 % int(value) == 0 && labels.job == "web"`, expr.True, true)
	f(`true`, expr.True, false)
}

func TestWithoutValue(t *testing.T) {
	x := expr.Sample{Series: series("", "m", "job", "api"), Value: math.NaN(), Time: 7}
	f := func(src string, want expr.Verdict) {
		t.Helper()
		p, err := expr.Compile(src, expr.Bool, testArgs)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.WithoutValue(&x); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", src, got, err, want)
		}
	}
	f(`value > 3`, expr.Open)
	f(`!(value > 3)`, expr.Open)
	f(`labels.job == "api" && value > 3`, expr.True)
	f(`labels.job == "web" && value > 3`, expr.False)
	f(`value > 3 && time == 7`, expr.True)
	f(`labels.job == "api" || value > 3`, expr.True)
	f(`value > 3 || labels.job == "web"`, expr.Open)
	f(`not (labels.job == "api" or value > 3)`, expr.False)
	f(`not (labels.job == "web" and value > 3)`, expr.True)
	f(`value > 3 || value < 1`, expr.Open)
	f(`name == "m"`, expr.True)

	p, err := expr.Compile(`int(labels.job) > 1 && value > 1`, expr.Bool, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.WithoutValue(&x); err == nil {
		t.Error("a failing conjunct passed")
	}
}

func TestNoAllocations(t *testing.T) {
	x := expr.Sample{Series: series("counter", "http_requests_total", "job", "api"), Value: 12}
	f := func(src string) {
		t.Helper()
		p, err := expr.Compile(src, expr.Bool, testArgs)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = p.Bool(&x) }); n != 0 {
			t.Errorf("%s: %v allocations", src, n)
		}
	}
	f(`labels.job == "api" && value > 3`)
	f(`name startsWith "go_" || labels.job in args.keep && max(value, 1) * 2 > 3`)
	f(`name matches "^http" && labels.code not in ["a", "b"]`)
}
