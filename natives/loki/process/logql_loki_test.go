//go:build !nologql

package process_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/loki/v3/pkg/logql/syntax"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
)

// TestLogQLFiles is TestFiles for stage.logql, which not every build contains.
func TestLogQLFiles(t *testing.T) { runFiles(t, "testdata/logql/*.txtar") }

// pipelines are compared with the results of Loki.
var pipelines = []string{
	`|= "error"`,
	`!= "error" |~ "a|b"`,
	`| json`,
	`| json | level="error"`,
	`| json | level="error" | line_format "{{.msg}}"`,
	`| json level="level", first="list[0]", deep="a.b"`,
	`| json | status >= 500 and took > 1s`,
	`| json | line_format "{{.level}}: {{.msg | ToUpper}} {{ __line__ | trunc 5 }}"`,
	`| json | label_format app=level, both="{{.app}}-{{.msg}}"`,
	`| json | label_format level=app | line_format "{{.level}}"`,
	`| json | drop app, msg`,
	`| json | drop level="error"`,
	`| json | keep level, app`,
	`| json | __error__=""`,
	`| json | __error__!=""`,
	`| json | drop __error__, __error_details__`,
	`| logfmt`,
	`| logfmt --strict`,
	`| logfmt --keep-empty`,
	`| logfmt level, m="msg"`,
	`| logfmt | level=~"warn|error" | line_format "{{.msg}}"`,
	"| regexp `(?P<method>[A-Z]+) (?P<path>/\\S*)`",
	`| pattern "<method> <path> <_>" | method="GET" | line_format "{{.path}}"`,
	`| unpack`,
	`| unpack | pod="p"`,
	`| decolorize`,
	`| decolorize |= "error"`,
	`| json | ip = ip("10.0.0.0/8")`,
	`| trace_id="t1" | line_format "{{.trace_id}}"`,
	`| label_format trace_id=app`,
	`| line_format "{{ __timestamp__ | unixEpoch }} {{.}}"`,
	`| line_format "{{ .nope }}"`,
	`| line_format "{{ div 1 .app }}"`,
	`| json | line_format "{{ range $k, $v := . }}{{ $k }} {{ end }}"`,
	`| json | json`,
}

// corpus contains lines of two streams, with and without metadata.
func corpus(t *testing.T, source uint64) *batch.Logs {
	t.Helper()
	var text strings.Builder
	for i, line := range []string{
		`{"level":"error","msg":"it \"broke\"","status":503,"took":"2s","ip":"10.1.1.1","list":["x",{"y":1}],"a":{"b":"c","d":null}}`,
		`{"level":"info","msg":"fine","status":200,"took":"1ms","app":"other","trace_id":"own","n":1.50e3,"ok":true,"":"x","é é":"y"}`,
		`{"level":"error","msg":"cut`,
		`{"level":"error","msg":"ünï \u0000 \ud83d\ude00"}`,
		`{"_entry":"packed error","pod":"p","app":"z"}`,
		`["level","error"]`,
		`level=warn msg="two words" app=x empty= bare took=3s`,
		`level=error msg="cut`,
		`GET /index.html HTTP/1.1 a`,
		"\x1b[31merror\x1b[0m b",
		``,
		`plain`,
		"\xff\xfe error",
	} {
		for _, stream := range []string{`{app="a"}`, `{app="b",env="prod"}`} {
			meta := ""
			if i%2 == 0 {
				meta = `{pod="m",trace_id="t1"} `
			}
			fmt.Fprintf(&text, "%s @2025-01-01T00:00:00.%09dZ %s%q\n", stream, i, meta, line)
		}
	}
	streams := map[string]*batch.Stream{}
	b, err := batch.ParseLogsText(text.String(), batch.TextOptions{Source: source, Series: func(ls []batch.Label, _ *batch.Metadata) *batch.Stream {
		k := fmt.Sprint(ls)
		if streams[k] == nil {
			streams[k] = batch.NewSeries(ls)
		}
		return streams[k]
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// row formats a line of a result with all its labels.
func row(line string, all []batch.Label) string {
	slices.SortFunc(all, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	return fmt.Sprintf("%s %q", batch.AppendMeta(nil, all), line)
}

// ofLoki returns the result of a Loki query for the lines.
func ofLoki(t *testing.T, pipeline string, in *batch.Logs) (rows []string) {
	t.Helper()
	e, err := syntax.ParseLogSelector("{} "+pipeline, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Pipeline()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range in.Line {
		meta := labels.NewScratchBuilder(0)
		for _, l := range in.MetaOf(i) {
			meta.Add(l.Name, l.Value)
		}
		out, result, ok := p.ForStream(in.Stream[i].PromLabels()).ProcessString(in.T[i], line, meta.Labels())
		if !ok {
			continue
		}
		var all []batch.Label
		result.Labels().Range(func(l labels.Label) {
			if l.Name != "__error__" && l.Name != "__error_details__" {
				all = append(all, batch.Label{Name: l.Name, Value: l.Value})
			}
		})
		rows = append(rows, row(out, all))
	}
	return rows
}

// TestLogQLIsLokis: stage.logql returns the same lines and labels as a query of
// the same lines in Loki, except for the error labels, which are not stored.
func TestLogQLIsLokis(t *testing.T) {
	for _, pipeline := range pipelines {
		n := newHarness(t)
		n.reload("stage.logql {\n\tpipeline = " + quoted(pipeline) + "\n}")
		if n.mistakes != "" {
			t.Errorf("%s: %s", pipeline, n.mistakes)
			continue
		}
		in := corpus(t, n.source)
		for range 2 { // the second run uses the caches
			if err := n.c.ConsumeLogs(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range n.takeBatches() {
				for i, s := range b.Stream {
					got = append(got, row(b.Line[i], append(s.AppendLabels(nil), b.MetaOf(i)...)))
				}
			}
			if diff := cmp.Diff(ofLoki(t, pipeline, in), got); diff != "" {
				t.Errorf("%s (-Loki +stage):\n%s", pipeline, diff)
			}
		}
	}
}

// TestLogQLSideBySide: several concurrent sources get the same result as a single
// one.
func TestLogQLSideBySide(t *testing.T) {
	const pipeline = `|= "e" | json | level=~"error|warn|" != "x" | label_format app="{{.level}}" | line_format "{{.msg}} {{.app}}"`
	n := newHarness(t)
	n.reload("stage.logql {\n\tpipeline = " + quoted(pipeline) + "\n}")
	want := ofLoki(t, pipeline, corpus(t, n.source))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			in := corpus(t, batch.NewSource())
			for range 10 {
				if err := n.c.ConsumeLogs(t.Context(), in); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, b := range n.takeBatches() {
		var got []string
		for i, s := range b.Stream {
			got = append(got, row(b.Line[i], append(s.AppendLabels(nil), b.MetaOf(i)...)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-Loki +stage):\n%s", diff)
		}
	}
}

// TestLogQLExtracts: later stages read the values that a query would show,
// although the stage extracts only the values that are read.
func TestLogQLExtracts(t *testing.T) {
	for _, pipeline := range pipelines {
		n := newHarness(t)
		n.reload("stage.logql {\n\tpipeline = " + quoted(pipeline) + "\n\tparsed = \"extracted\"\n}\n" +
			"stage.labels {\n\tvalues = { x = \"level\", y = \"app_extracted\", z = \"msg\" }\n}")
		if n.mistakes != "" {
			t.Errorf("%s: %s", pipeline, n.mistakes)
			continue
		}
		in := corpus(t, n.source)
		if err := n.c.ConsumeLogs(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		all := newHarness(t)
		all.reload("stage.logql {\n\tpipeline = " + quoted(pipeline) + "\n}")
		if err := all.c.ConsumeLogs(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, b := range n.takeBatches() {
			for i, s := range b.Stream {
				got = append(got, fmt.Sprintf("%q %q %q %q", b.Line[i], s.Label("x"), s.Label("y"), s.Label("z")))
			}
		}
		for _, b := range all.takeBatches() {
			for i := range b.Stream {
				of := func(name string) string {
					for _, l := range b.MetaOf(i) {
						if l.Name == name {
							return strings.ToValidUTF8(l.Value, "")
						}
					}
					return ""
				}
				want = append(want, fmt.Sprintf("%q %q %q %q", b.Line[i], of("level"), of("app_extracted"), of("msg")))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-all of it +what is asked for):\n%s", pipeline, diff)
		}
	}
}

func quoted(s string) string {
	if strings.Contains(s, "`") {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}
