package config_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
)

func TestWrite(t *testing.T) {
	text := "a \"x\" {\n\tforward = [b.c.receiver]\r\n  s = \"äöü\" + nope\n  esc = \"\x1b[31m\"\n" + strings.Repeat("y", 300) + " = here\n}\n"
	files := map[string]string{"c.alloy": text}
	f := func(d config.Diagnostic, color bool, want string) {
		t.Helper()
		var b strings.Builder
		if err := (config.Diagnostics{d}).Write(&b, files, color); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	at := func(line, col, endLine, endCol int) config.Span {
		return config.Span{File: "c.alloy", Line: line, Col: col, EndLine: endLine, EndCol: endCol}
	}
	// A tab is four columns. A carriage return is not part of the line.
	f(config.Diagnostic{Span: at(2, 13, 2, 24), Msg: "component b.c does not exist", Hint: "add it"}, false, strings.TrimLeft(`
c.alloy:2:13: error: component b.c does not exist
  2 |     forward = [b.c.receiver]
    |                ^^^^^^^^^^^^
  hint: add it
`, "\n"))
	// Characters, not bytes, are underlined; columns are bytes.
	f(config.Diagnostic{Span: at(3, 18, 3, 21), Severity: config.Warning, Msg: "m"}, false, strings.TrimLeft(`
c.alloy:3:18: warning: m
  3 |   s = "äöü" + nope
    |               ^^^^
`, "\n"))
	f(config.Diagnostic{Span: at(3, 7, 3, 14), Msg: "m"}, false, strings.TrimLeft(`
c.alloy:3:7: error: m
  3 |   s = "äöü" + nope
    |       ^^^^^
`, "\n"))
	// A range of several lines is marked to the end of the first.
	f(config.Diagnostic{Span: at(1, 1, 6, 1), Msg: "m"}, false, "c.alloy:1:1: error: m\n  1 | a \"x\" {\n    | ^^^^^^^\n")
	// Past the end of a line.
	f(config.Diagnostic{Span: at(1, 8, 1, 8), Msg: "m"}, false, "c.alloy:1:8: error: m\n  1 | a \"x\" {\n    |        ^\n")
	// A config cannot control the terminal.
	f(config.Diagnostic{Span: at(4, 3, 4, 5), Msg: "m"}, false, "c.alloy:4:3: error: m\n  4 |   esc = \"\ufffd[31m\"\n    |   ^^^\n")
	f(config.Diagnostic{Span: config.Span{File: "a\x1bb", Line: 1}, Msg: "m\x07", Hint: "h\u009b"}, false, "a\ufffdb:1: error: m\ufffd\n  hint: h\ufffd\n")
	// The detail is on separate lines.
	f(config.Diagnostic{Span: at(1, 1, 1, 1), Msg: "m", Detail: "s.lua:1: x\n  1 | \x1b[2J", Hint: "h"}, false, strings.TrimLeft(`
c.alloy:1:1: error: m
  1 | a "x" {
    | ^
  s.lua:1: x
    1 | `+"\ufffd"+`[2J
  hint: h
`, "\n"))
	// A long line is cut around the place.
	f(config.Diagnostic{Span: at(5, 304, 5, 307), Msg: "m"}, false, "c.alloy:5:304: error: m\n  5 | …"+strings.Repeat("y", 37)+" = here\n    | "+strings.Repeat(" ", 41)+"^^^^\n")
	// Without a source line.
	f(config.Diagnostic{Span: config.Span{File: "c.alloy"}, Msg: "m"}, false, "c.alloy: error: m\n")
	f(config.Diagnostic{Span: config.Span{File: "other", Line: 3, Col: 1}, Msg: "m", Hint: "h"}, false, "other:3:1: error: m\n  hint: h\n")
	f(config.Diagnostic{Span: at(99, 1, 99, 1), Msg: "m"}, false, "c.alloy:99:1: error: m\n")
	f(config.Diagnostic{Msg: "m"}, false, "error: m\n")
	f(config.Diagnostic{Span: at(1, 1, 1, 1), Msg: "m"}, true,
		"\x1b[1mc.alloy:1:1:\x1b[0m \x1b[31;1merror:\x1b[0m \x1b[1mm\x1b[0m\n  \x1b[34m1 |\x1b[0m a \"x\" {\n  \x1b[34m  |\x1b[0m \x1b[31;1m^\x1b[0m\n")
}

func TestPrintable(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := config.Printable(in); got != want {
			t.Errorf("got %q for %q, want %q", got, in, want)
		}
	}
	f("a\n\tb äö→ 日本", "a\n\tb äö→ 日本")
	f("\x1b]0;x\a \x1b[2J\r\x00\b\x7f", "\ufffd]0;x\ufffd \ufffd[2J\ufffd\ufffd\ufffd\ufffd")
	f("\u009b31m \x9b31m \xff", "\ufffd31m \ufffd31m \ufffd")
}

func TestDiagnosticsErr(t *testing.T) {
	w := config.Diagnostic{Severity: config.Warning, Msg: "w"}
	e1, e2 := config.Diagnostic{Span: config.Span{File: "a", Line: 2}, Msg: "e"}, config.Diagnostic{Span: config.Span{File: "a", Line: 1}, Msg: "e"}
	if err := (config.Diagnostics{{Msg: "m", Hint: "h", Detail: "a\nb"}}).Err(); err.Error() != "m (h)\n  a\n  b" {
		t.Errorf("got %v", err)
	}
	if err := (config.Diagnostics{w}).Err(); err != nil {
		t.Errorf("got %v for a warning", err)
	}
	if err := (config.Diagnostics(nil)).Err(); err != nil {
		t.Errorf("got %v for nothing", err)
	}
	if err := (config.Diagnostics{e1, w, e2, e1}).Err(); err == nil || err.Error() != "a:1: e\na:2: e" {
		t.Errorf("got %v", err)
	}
}

func TestRedact(t *testing.T) {
	r := flow.NewReceiver("a.b.c", batch.SignalMetrics, nil, nil)
	args := &arguments{
		ForwardTo: []*flow.Receiver{r},
		Interval:  time.Minute,
		Timeout:   1500 * time.Millisecond,
		Any:       math.NaN(),
		Endpoints: []*endpoint{{"l", "u", 1}},
		Auth:      &auth{"me", "hush"},
		Stages:    []stage{{JSON: &jsonStage{[]string{"x"}}}},
		HTTP:      client{"hush", map[string]component.Secret{"k": "hush"}},
	}
	want := map[string]any{
		"forward_to": []any{"a.b.c.receiver"}, "targets": []any{}, "scrape_interval": "1m", "scrape_timeout": "1.5s",
		"sample_limit": 0, "honor_labels": false, "any": "NaN",
		"endpoint":     []any{map[string]any{"label": "l", "url": "u", "size": 1}},
		"basic_auth":   map[string]any{"username": "me", "password": "(secret)"},
		"labels":       map[string]any{},
		"stage":        []any{map[string]any{"json": map[string]any{"fields": []any{"x"}}}},
		"bearer_token": "(secret)", "http_headers": map[string]any{"k": "(secret)"},
	}
	if diff := cmp.Diff(any(want), config.Redact(args)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	want = map[string]any{"receiver": "a.b.c.receiver", "targets": []any{}, "content": "(secret)", "n": 3}
	got := config.Redact(exports{Receiver: r, Content: component.OptionalSecret{IsSecret: true, Value: "hush"}, N: 3})
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("exports (-want +got):\n%s", diff)
	}
	for _, v := range []any{nil, (*arguments)(nil)} {
		if got := config.Redact(v); got != nil {
			t.Errorf("got %v for nothing", got)
		}
	}
	// No way of formatting a secret reveals it.
	for _, v := range []any{component.Secret("hush"), []any{component.Secret("hush")}, map[string]any{"x": &[]component.Secret{"hush"}}} {
		args.Any = v
		got := config.Redact(args).(map[string]any)["any"]
		if strings.Contains(cmp.Diff(nil, got), "hush") {
			t.Errorf("got %v", got)
		}
	}
}

func TestDescribe(t *testing.T) {
	args := new(arguments)
	args.SetToDefault()
	want := []config.Field{
		{Path: "forward_to", Type: "list(receiver)", Required: true},
		{Path: "targets", Type: "list(map(string))"},
		{Path: "scrape_interval", Type: "duration", Default: `"1m"`},
		{Path: "scrape_timeout", Type: "duration", Default: `"10s"`},
		{Path: "sample_limit", Type: "number", Default: "0"},
		{Path: "honor_labels", Type: "bool", Default: "false"},
		{Path: "any", Type: "any"},
		{Path: "endpoint", Type: "block", Block: true, Repeated: true, Labeled: true},
		{Path: "endpoint.url", Type: "string", Required: true},
		{Path: "endpoint.size", Type: "number", Default: "3"},
		{Path: "basic_auth", Type: "block", Block: true},
		{Path: "basic_auth.username", Type: "string", Required: true},
		{Path: "basic_auth.password", Type: "secret"},
		{Path: "labels", Type: "block of string", Block: true},
		{Path: "stage.json", Type: "block", Block: true, Repeated: true},
		{Path: "stage.json.fields", Type: "list(string)", Required: true},
		{Path: "stage.regex", Type: "block", Block: true, Repeated: true},
		{Path: "stage.regex.expression", Type: "string", Required: true},
		{Path: "bearer_token", Type: "secret"},
		{Path: "http_headers", Type: "map(secret)"},
	}
	if diff := cmp.Diff(want, config.Describe(args)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	got := config.Describe(exports{})
	if len(got) != 4 || got[0].Type != "receiver" || got[2].Type != "secret or string" {
		t.Errorf("got exports %+v", got)
	}
	if got := config.Describe(nil); got != nil {
		t.Errorf("got %v for nothing", got)
	}
	if got := config.Describe(nestedBlock{}); len(got) != 2 {
		t.Errorf("got %+v for a block that nests itself", got)
	}
	want = []config.Field{
		{Path: "stage.match", Type: "block", Block: true, Repeated: true},
		{Path: "stage.match.stage.*", Type: "block", Block: true, Repeated: true},
		{Path: "stage.drop", Type: "block", Block: true, Repeated: true},
	}
	if diff := cmp.Diff(want, config.Describe(nestedStages{})); diff != "" {
		t.Errorf("kinds of blocks within one of them (-want +got):\n%s", diff)
	}
}

type nestedStages struct {
	Stages []nestedKind `alloy:"stage,enum,optional"`
}

type nestedKinds struct {
	Stages []nestedKind `alloy:"stage,enum,optional"`
}

type nestedKind struct {
	Match *nestedKinds `alloy:"match,block,optional"`
	Drop  *struct{}    `alloy:"drop,block,optional"`
}

func TestRedactURLs(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := config.Redact(map[string][]string{"k": {in}}); !cmp.Equal(got, any(map[string]any{"k": []any{want}})) {
			t.Errorf("got %v for %q, want %q", got, in, want)
		}
	}
	f("http://me:hush@h:1/p?q=a@b", "http://me:(hidden)@h:1/p?q=(hidden)")
	f("http://:hush@h", "http://:(hidden)@h")
	f("http://me:hu@sh@h/a:b@c", "http://me:(hidden)@h/(hidden)")
	f("http://h:1/a:b@c", "http://h:1/(hidden)")
	f("a://b:c@d and e://f:g@h", "a://b:(hidden)@d and e://f:(hidden)@h")
	for _, same := range []string{"http://me@h/", "http://h:1?a:b@c", "a:b@c", "://", "http://h:1"} {
		f(same, same)
	}
}

// Headers and query parameters are strings in Alloy, and often secret.
func TestRedactHeaders(t *testing.T) {
	type arguments struct {
		Headers map[string]string   `alloy:"headers,attr,optional"`
		Params  map[string][]string `alloy:"params,attr,optional"`
		Targets []map[string]string `alloy:"targets,attr,optional"`
	}
	got := config.Redact(arguments{
		Headers: map[string]string{"X-Api-Key": "hush", "Empty": ""},
		Params:  map[string][]string{"token": {"hush", "hush"}},
		Targets: []map[string]string{{"__address__": "h:1", "__param_token": "hush"}},
	})
	want := map[string]any{
		"headers": map[string]any{"X-Api-Key": "(secret)", "Empty": ""},
		"params":  map[string]any{"token": []any{"(secret)", "(secret)"}},
		"targets": []any{map[string]any{"__address__": "h:1", "__param_token": "(secret)"}},
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDescribeDefaultsOfOuterBlock: a nested block may get its defaults from
// the block around it, as in decoding.
func TestDescribeDefaultsOfOuterBlock(t *testing.T) {
	type inner struct {
		N int `alloy:"n,attr,optional"`
	}
	type outer struct {
		Value   inner  `alloy:"value,block,optional"`
		Pointer *inner `alloy:"pointer,block,optional"`
		Unset   *inner `alloy:"unset,block,optional"`
	}
	var got []string
	for _, f := range config.Describe(&outer{Value: inner{7}, Pointer: &inner{8}}) {
		if !f.Block {
			got = append(got, f.Path+" = "+f.Default)
		}
	}
	if diff := cmp.Diff([]string{"value.n = 7", "pointer.n = 8", "unset.n = 0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type nestedBlock struct {
	N    int           `alloy:"n,attr,optional"`
	Next []nestedBlock `alloy:"next,block,optional"`
}

func TestCheck(t *testing.T) {
	c, ds := config.Parse(map[string]string{"c.alloy": "prometheus.scrap \"x\" {}\nlogging \"y\" {}\nremotecfg {}\ntracing {}\nprometheus.scrape {}\nzzz.yyy \"a\" {}\n" +
		"discovery.ec2 \"x\" {}\ndiscovery.ec3 \"x\" {}\notelcol.new.thing \"x\" {}\nprometheus.scrapf \"x\" {}\n"})
	if len(ds) > 0 {
		t.Fatal(diagnose(ds))
	}
	unsupported := config.Unsupported{
		"discovery.ec2": "use discovery.file", "otelcol.*": "run a collector", "remotecfg": "write a file", "prometheus.scrapg": "x",
	}
	var got strings.Builder
	for _, b := range c.Blocks {
		known, ds := b.Check([]string{"prometheus.scrape", "logging", "discovery.dns"}, unsupported, "my/scripts/"+strings.ReplaceAll(b.Name, ".", "/")+".x")
		if known {
			rule := config.LabelRequired
			if b.Name == "logging" {
				rule = config.LabelForbidden
			}
			ds = append(ds, b.CheckLabel(rule)...)
		}
		got.WriteString(diagnose(ds))
	}
	want := "c.alloy:1:1: component prometheus.scrap does not exist (did you mean prometheus.scrape?)\n" +
		"c.alloy:2:1: block logging takes no label (there is only one: write: logging {)\n" +
		"c.alloy:3:1: block remotecfg is not supported (write a file)\n" +
		"c.alloy:4:1: warning: block tracing has no effect (remove the block)\n" +
		"c.alloy:5:1: block prometheus.scrape needs a label (write: prometheus.scrape \"default\" {)\n" +
		"c.alloy:6:1: component zzz.yyy does not exist (`weir components` lists all there are; a script of this name would be my/scripts/zzz/yyy.x)\n" +
		"c.alloy:7:1: block discovery.ec2 is not supported (use discovery.file)\n" +
		"c.alloy:8:1: component discovery.ec3 does not exist (did you mean discovery.ec2? It is not supported: use discovery.file)\n" +
		"c.alloy:9:1: block otelcol.new.thing is not supported (run a collector)\n" +
		"c.alloy:10:1: component prometheus.scrapf does not exist (did you mean prometheus.scrape?)\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a \"x\" {\n v = 1\n}\n", "a {\n v = [b.c.d, {x = 1}][0](f(\"s\"), -1 ^ !true)\n}", "a \"\" { b \"l\" {} }",
		"a {", "a }", "a = ", "\"", "a.b.c", "/* x", "// x", "a { v = `raw\n` }", "\ufeffa {}", "a {\n\nb \"x\" {\n}\n", "a {\r\n}\r\n",
		"a {\n v = \"\\u00\"\n}", "prometheus.scrape \"x\" {\n forward_to = [a.b.c]\n targets = 5\n endpoint \"q\" { }\n}",
		"a { v = { \"k\" = null } }", "é {}", "a { v = 1e999 }", "a { v = string.format(\"%d\", 1) }", "a { v = [1][\"x\"] }",
		"a { any = array.combine_maps([], [], []) }", "a { any = encoding.from_json(\"{\") }", "a {\n any = 2 ^ 2 % 0\n}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ds := config.Parse(map[string]string{"c.alloy": text})
		s, _ := universe(c)
		for _, b := range c.Blocks {
			s.SetProvisional(b.ID, exports{})
		}
		for _, b := range c.Blocks {
			_, more := b.Resolve(s)
			ds = append(ds, more...)
			_, more = b.Check([]string{"a"}, nil)
			ds = append(ds, more...)
			args := new(arguments)
			ds = append(ds, b.Decode(s, args)...)
			config.Redact(args)
			config.Receivers(args)
		}
		lines := strings.Count(text, "\n") + 1
		for _, d := range ds.Sort() {
			if d.Line < 0 || d.Line > lines || d.Line > 0 && (d.Col < 1 || d.EndLine < d.Line) {
				t.Errorf("position %+v of %q in %d lines", d.Span, d.Msg, lines)
			}
		}
		var b strings.Builder
		if err := ds.Write(&b, c.Files, true); err != nil {
			t.Error(err)
		}
	})
}
