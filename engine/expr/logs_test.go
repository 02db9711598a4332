package expr_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

var logSample = expr.Sample{
	Series: batch.NewSeries([]batch.Label{{Name: "__name__", Value: "n"}, {Name: "app", Value: "api"}}),
	Time:   1700000000000,
	Line:   `level=warn msg="took 12 ms"`,
	Meta:   []batch.Label{{Name: "empty", Value: ""}, {Name: "trace", Value: "t1"}},
}

func TestLogs(t *testing.T) {
	f := func(src string, want bool) {
		t.Helper()
		p, err := expr.CompileLogs(src, expr.Bool, map[string]any{"apps": []string{"api", "web"}})
		if err != nil {
			t.Errorf("%s: %v", src, err)
			return
		}
		x := logSample
		if got, err := p.Bool(&x); err != nil || got != want {
			t.Errorf("%s: got %v, %v", src, got, err)
		}
	}

	f(`line contains "warn"`, true)
	f(`line matches "took \\d+"`, true)
	f(`line startsWith "level=" && not (line endsWith "x")`, true)
	f(`labels.app == "api" && labels.app in args.apps`, true)
	f(`labels.gone == "" && labels["app"] == "api"`, true)
	f(`labels.__name__ == "n" && "__name__" in labels`, true)
	f(`meta.trace == "t1" && meta["trace"] == "t1" && meta.gone == ""`, true)
	f(`"trace" in meta && !("gone" in meta) && !("empty" in meta)`, true)
	f(`time == 1700000000000 && len(line) > 10`, true)
	f(`meta[labels.app] == ""`, true)
	f(`lower(line) contains "WARN"`, false)

	// Nodes without a closure run on expr's own VM, with the same input.
	f(`split(line, " ")[0] == "level=warn"`, true)
	f(`any(split(line, "="), {# contains "took"})`, true)
	f(`len(meta) == 1 && len(labels) == 2`, true)
}

// TestLogLabelPart: what reads labels alone is the label part.
func TestLogLabelPart(t *testing.T) {
	f := func(src string, want expr.Verdict, rest bool) {
		t.Helper()
		p, err := expr.CompileLogs(src, expr.Bool, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := logSample
		if got := p.LabelPart(&x); got != want || p.HasRest() != rest {
			t.Errorf("%s: got %v, rest %v", src, got, p.HasRest())
		}
	}
	f(`labels.app == "api" && line contains "x"`, expr.True, true)
	f(`labels.app == "web" && line contains "x"`, expr.False, true)
	f(`line contains "x"`, expr.True, true)
	f(`meta.trace == "t1" && labels.app == "web"`, expr.False, true)
	f(`labels.app == "api"`, expr.True, false)
}

func TestLogMistakes(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		if _, err := expr.CompileLogs(src, expr.Bool, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
	f(`value > 3`, "a log line has no value: there is line, labels, meta, time and args")
	f(`name == "x"`, "a log line has no name")
	f(`metadata.x == "y"`, "metadata is called meta here")
	f(`line`, "it must be true or false, not a string")
	f(`line matches "("`, "missing closing )")
	if _, err := expr.Compile(`line contains "x"`, expr.Bool, nil); err == nil || !strings.Contains(err.Error(), "a sample has no line: there is name, labels, value, type, time and args") {
		t.Errorf("over samples: got %v", err)
	}
}

// TestEither: an expression is one over what it reads.
func TestEither(t *testing.T) {
	f := func(src string, metrics, logs bool, why string) {
		t.Helper()
		p, err := expr.CompileEither(src, expr.Bool, map[string]any{"x": 1})
		if (p.Metrics != nil) != metrics || (p.Logs != nil) != logs {
			t.Errorf("%s: samples %v, lines %v", src, p.Metrics != nil, p.Logs != nil)
		}
		if (err == nil) != (metrics || logs) || (p.Why == nil) == (metrics != logs) {
			t.Errorf("%s: got %v, why %v", src, err, p.Why)
		}
		if err == nil && p.Why != nil {
			err = p.Why
		}
		if err == nil && why != "" || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want %s", src, err, why)
		}
	}
	f(`labels.app == "a" && time > args.x`, true, true, "")
	f(`true`, true, true, "")
	f(`value > 3`, true, false, "a log line has no value: there is line")
	f(`name == "x" && labels.app == "a"`, true, false, "a log line has no name")
	f(`type == "counter"`, true, false, "a log line has no type")
	f(`line contains "x"`, false, true, "a sample has no line: there is name")
	f(`meta.trace == ""`, false, true, "a sample has no meta")
	// Of neither.
	f(`labels.app == "a" && value > 3 && line contains "x"`, false, false, "a log line has no value: there is line, labels, meta, time and args; and a sample has no line: there is name, labels, value, type, time and args (1:22)")
	f(`lables.app == "a"`, false, false, "unknown name lables")
	f(`lien contains "x"`, false, false, "unknown name lien")
	// A mistake in what is of one signal is said of that one.
	f(`value > "x"`, false, false, "invalid operation")
	f(`line matches "("`, false, false, "missing closing )")
	f(`line`, false, false, "it must be true or false, not a string")
	f(`value`, false, false, "it must be true or false, not a number")
	f(`line contains lables.x`, false, false, "unknown name lables")
}
