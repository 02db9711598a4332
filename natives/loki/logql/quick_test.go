//go:build !nologql

package logql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/loki/v3/pkg/logql/log"
	"github.com/prometheus/prometheus/model/labels"
)

// quickPipelines contain stages that are replaced by ours.
var quickPipelines = []string{
	`| json level, msg, n="status" | line_format "{{.level}}: {{ .msg }} {{.n}}{{.nope}}"`,
	`| json app, trace_id | drop app, level | line_format "[{{.app}} {{.trace_id}} {{.level}}]"`,
	`| json msg | json level | label_format app=level, env="x" | line_format "{{.app}}{{.env}} {{.msg}}"`,
	`| json msg="[\"a b\"]", level | level != "debug" | line_format "a {{.msg}} b {{.app_extracted}}"`,
	`| json a, b | keep a | line_format "{{.a}}-{{.b}}-{{.env}}"`,
}

// quickLines are typical objects, and lines that are almost objects.
var quickLines = []string{
	``, ` `, `{}`, `{ }`, `{} `, `{`, `{"`, `null`, `[]`, `"level"`, `level`, ` {"level":"x"}`,
	`{"level":"info","msg":"it was","status":200,"app":"other","a":true,"b":null,"trace_id":"7"}`,
	"{ \"level\" : \"info\" ,\t\"msg\":\"\" , \"status\" : -1.5e+7 }\r\n",
	`{"level":"info","level":"warn","msg":"a","msg":"b"}`,
	`{"level":null,"level":"warn","msg":"a"}`,
	`{"x":{"level":"deep","y":[{"msg":"}"}]},"level":"top","z":[1,"]",[2]],"msg":"m"}`,
	`{"x":{"y":["\""]},"level":"top"}`,
	`{"x":{"level":]},"level":"top","msg":"m"}`,
	`{"x":[{"level":"a"},"level":"b"],"level":"c"}`,
	`{"level":{"a": [1,"b"]},"msg":["x",{"y":1}],"a":["\u0041"],"b":["ü"]}`,
	`{"level":{"a": 1,"msg":["x"}`,
	`{"msg":"say \"so\" \\ \/ \b\f\n\r\t","level":"\u00fc\ud83d\ude00","a":"\ud83d","b":"\x"}`,
	`{"msg":"ends in \\","level":"\\"}`, `{"msg":"open\"}`, `{"msg":"open\`,
	`{"l\u0065vel":"escaped name","msg":"m"}`, `{"a b":"space","":"none","level":"x"}`,
	"{\"level\":\"\xff\",\"msg\":\"\uFFFD\",\"a\":\"ünï\",\"b\":\"\x00\x1f\"}",
	"{\"level\":\"a\nb\",\"msg\":\"c\x80d\"}",
	`{"level":1,"msg":tru,"a":false}`, `{"level":TRUE}`, `{"level":nul}`, `{"level":undefined}`, `{"level":.5,"a":-}`, `{"level":}`, `{"level":,"msg":1}`,
	`{"level":00!`, `{"level":[\0]`, `{"x":[\0],"level":"a"}`, `{"level":1a2,"msg":01}`, `{"level":"a"x,"msg":"b"}`, `{"level":"a":"msg","msg":"b"}`,
	`{"level":"a","msg":"b",}`, `{"level":"a",,"msg":"b"}`, `{,"level":"a"}`, `{"level" "a"}`, `{"level":"a" "msg":"b"}`,
	`{"level":"a"} {"msg":"b"}`, `{"level":"a"},"msg":"b"`, `{"level":"a"}}`, `{"level":"a"}"msg":"b"`, `{"level":"a"`,
	`{"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `,"level":"a"}`,
	`{"x":` + strings.Repeat(`{"x":`, 60) + `1` + strings.Repeat("}", 60) + `,"level":"a"}`,
}

// quickResult returns the result of stages for a line.
func quickResult(stages []log.Stage, b *log.LabelsBuilder, meta labels.Labels, line string) string {
	b.Reset()
	b.Add(log.StructuredMetadataLabel, meta)
	out := []byte(line)
	for _, s := range stages {
		var ok bool
		if out, ok = s.Process(1, out, b); !ok {
			return "filtered"
		}
	}
	text := fmt.Sprintf("%q", out)
	for _, kind := range []log.LabelCategory{log.StreamLabel, log.StructuredMetadataLabel, log.ParsedLabel} {
		ls := b.UnsortedLabels(nil, kind)
		slices.SortFunc(ls, func(a, b labels.Label) int { return strings.Compare(a.Name, b.Name) })
		text += fmt.Sprintf(" %q", ls)
	}
	return text
}

// quickPair is a pipeline with Loki's stages and with ours.
type quickPair struct {
	src        string
	loki, ours []log.Stage
}

// quickPairs creates the pairs of all pipelines.
func quickPairs(t testing.TB) (out []quickPair) {
	for _, src := range quickPipelines {
		p, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		loki, err := p.newStages()
		if err != nil {
			t.Fatal(err)
		}
		ours, err := p.newStages()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, quickPair{src, loki, replaceStages(ours, p.stages)})
	}
	return out
}

// check compares our result with Loki's, with labels and metadata whose names may
// also occur in the line, and with hints.
func (p quickPair) check(t *testing.T, line string) {
	for _, required := range [][]string{nil, {"level"}, {"nope"}, {"app_extracted", "msg"}} {
		builder := func() *log.LabelsBuilder {
			hints := log.NewParserHint(required, nil, false, required != nil, "", nil)
			return log.NewBaseLabelsBuilderWithGrouping(nil, hints, false, false).ForLabels(labels.FromStrings("app", "api", "env", "prod"), 0)
		}
		for _, meta := range []labels.Labels{labels.EmptyLabels(), labels.FromStrings("msg", "of meta", "trace_id", "t1")} {
			want, got := quickResult(p.loki, builder(), meta, line), quickResult(p.ours, builder(), meta, line)
			if want != got {
				t.Errorf("%s, hints %q, metadata %s, line %q:\nLoki %s\nours %s", p.src, required, meta, line, want, got)
			}
		}
	}
}

func TestQuickIsLokis(t *testing.T) {
	for _, p := range quickPairs(t) {
		for _, line := range quickLines {
			p.check(t, line)
		}
	}
}

// TestQuickIsQuick checks that the test above uses our stages.
func TestQuickIsQuick(t *testing.T) {
	for _, p := range quickPairs(t) {
		var members, formats int
		for _, s := range p.ours {
			switch s.(type) {
			case *jsonMembers:
				members++
			case *plainFormat:
				formats++
			case *log.JSONExpressionParser, *log.LineFormatter:
				t.Errorf("%s: %T is Loki's", p.src, s)
			}
		}
		if members == 0 || formats != 1 {
			t.Errorf("%s: %d and %d stages are ours", p.src, members, formats)
		}
	}
}

// TestQuickRefuses: Loki's stages are used for expressions that are more than
// names or depend on their order.
func TestQuickRefuses(t *testing.T) {
	for _, src := range []string{
		`| json a="b.c"`, `| json a="b[0]"`, `| json a="b", c="b"`, `| json a, a="b"`, `| json a, a_extracted`,
		`| line_format "{{.a}}"`, `| line_format "{{.a | ToUpper}} {{.b}}"`, `| line_format "{{.a}} {{ __line__ }}"`,
		`| line_format "{{.a}} {{.__error__}}"`, `| line_format "{{ if .a }}x{{ end }} y"`, `| line_format "{{.a.b}} y"`,
	} {
		p, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		stages, err := p.newStages()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range replaceStages(stages, p.stages) {
			switch s.(type) {
			case *jsonMembers, *plainFormat:
				t.Errorf("%s: %T is ours", src, s)
			}
		}
	}
}

func FuzzQuick(f *testing.F) {
	for _, line := range quickLines {
		f.Add(line)
	}
	pairs := quickPairs(f)
	f.Fuzz(func(t *testing.T, line string) {
		for _, p := range pairs {
			p.check(t, line)
		}
	})
}
