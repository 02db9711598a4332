package scripts_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// hostileArgs are the arguments that a script needs to do something with what it
// is sent. A script without required arguments needs none.
var hostileArgs = map[string]string{
	"enrich.http_lookup": `
url    = "https://hook.example/{value}"
label  = "host"
labels = { team = "team" }`,
	"logs.dedupe": `alike = true`,
	"logs.json_promote": `
labels   = { level = "level" }
metadata = { trace = "a.b.c" }
drop     = { level = "^debug$" }
line     = "msg"`,
	"logs.to_metrics": `
metric {
	name   = "lines_total"
	match  = ".*(a|b)+$"
	labels = { level = "json.level", host = "labels.host" }
}
metric {
	name  = "seconds"
	type  = "histogram"
	value = "logfmt.seconds"
}`,
	"metrics.aggregate":         `match = "^hostile"`,
	"metrics.counter_to_rate":   `keep = true`,
	"metrics.cardinality_guard": `fold = ["host"]`,
	"sink.influx_line":          `url = "https://hook.example/write"`,
	"sink.slack": `
url        = "https://hook.example/"
per_minute = 100000
title      = "{job} {host}"`,
	"sink.webhook": `
url = "https://hook.example/"
rule {
	name    = "any"
	metric  = ".*"
	above   = -1
	summary = "{host} {value}"
}`,
}

// hostileTexts are lines, and values of labels up to 64 KiB.
func hostileTexts() map[string]string {
	const mb = 256 << 10 // what loki.source.api accepts as a line
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	texts := map[string]string{
		"empty":         "",
		"NUL":           "\x00",
		"many NULs":     strings.Repeat("\x00", mb),
		"not UTF-8":     "\xff\xfe level=\xc3 {\"level\":\"\xff\"}",
		"not UTF-8, MB": strings.Repeat("\xff", mb),
		"U+2028":        "a\u2028b\r\nc\rd",
		"constructor":   `{"level":"constructor","__proto__":{"level":"x"}}`,
		"__proto__":     `level=__proto__`,
		"deep lists":    deep("[", "]", 10_000),
		"deep objects":  deep(`{"a":`, "}", 10_000),
		"deep level":    `{"level":` + deep("[", "]", 10_000) + `}`,
		"long number":   `{"level":` + strings.Repeat("9", mb) + `}`,
		"many keys":     "{" + strings.Repeat(`"a":1,`, mb/6) + `"level":"info"}`,
		"logfmt":        strings.Repeat(`level="a `, mb/9),
		"pairs":         strings.Repeat("a=b ", mb/4),
		"nginx":         `1.2.3.4 - ` + strings.Repeat("- [", mb/3) + ` "GET / HTTP/1.1" 200 1`,
		"nginx quotes":  `1.2.3.4 - - [01/Jan/2025:00:00:00 +0000] "` + strings.Repeat(`\"`, mb/2),
		"hex":           strings.Repeat("1f", mb/2) + "z",
		"words":         strings.Repeat("aA1 0x", mb/6),
		"digits":        strings.Repeat("4111 ", mb/5),
		"IBAN":          strings.Repeat("DE89", mb/4),
		"addresses":     strings.Repeat("a@b.c@", mb/6),
		"10 MB of @":    strings.Repeat("@", 10<<20),
	}
	for _, c := range []string{"@", "=", `"`, "{", "[", "\\", ".", "/", "?", "-", ",", " ", "\n", "a", "é"} {
		texts["MB of "+c] = strings.Repeat(c, mb/len(c))
	}
	return texts
}

// answers is the outside: everything is accepted and kept.
type answers struct{ bodies strings.Builder }

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.bodies.Write(body)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(`{"ok":true,"team":"t"}`)),
	}, nil
}

// arguments are those of a block with a body, in which prometheus.echo.x.receiver is sink.
func arguments(t *testing.T, r component.Registration, name, body string, sink *flowtest.Sink) any {
	t.Helper()
	args := r.NewArgs()
	cfg, ds := config.Parse(map[string]string{"test.alloy": name + " \"default\" {\n" + body + "\n}\n"})
	if len(ds) == 0 {
		scope := cfg.NewScope("test")
		scope.Set("prometheus.echo.x", struct {
			Receiver *flow.Receiver `alloy:"receiver,attr"`
		}{sink.Receiver()})
		ds = cfg.Blocks[0].Decode(scope, args)
	}
	if len(ds) > 0 {
		t.Fatalf("cannot configure it, hostileArgs may have to say how: %v", ds.Err())
	}
	return args
}

// TestHostileRecords sends hostile records to every script that takes records.
// None makes it fail, and the records before and after get through.
func TestHostileRecords(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it takes half a minute, and ten with the race detector")
	}
	out := new(answers)
	c, err := registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New(), js.New()}, Embedded: scripts.FS, Modules: stdlib.Modules(), Outside: host.Outside{HTTP: out},
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := hostileTexts()
	for _, name := range c.Names() {
		r, _ := c.Lookup(name)
		if r.Accepts == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			n, sink := componenttest.New(t, name+".default"), flowtest.NewSink("sink")
			n.StoragePath = "" // a sink sends at once
			body := hostileArgs[name] + "\nscript {\nlimits { time = \"30s\" }\n"
			if strings.Contains(body, "hook.example") {
				body += "allow { http = [\"https://hook.example/*\"] }\n"
			}
			body += "}"
			if r.Sends != 0 {
				body += "\nforward_to = [prometheus.echo.x.receiver]"
			}
			comp := n.Build(t, r, arguments(t, r, name, body, sink))
			n.Run(t, comp)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			handles := batch.NewInterner(0)
			series := func(name, job, host string) *batch.Series {
				return handles.Intern([]batch.Label{{Name: "__name__", Value: name}, {Name: "host", Value: host}, {Name: "job", Value: job}}, nil, time.Time{})
			}
			logged := 0
			for i, kind := range slices.Sorted(maps.Keys(texts)) {
				text := texts[kind]
				value := strings.ToValidUTF8(text[:min(len(text), 64<<10)], "")
				sink.Forget()
				out.bodies.Reset()
				before, after := fmt.Sprintf("before%d", i), fmt.Sprintf("after%d", i)
				var got strings.Builder
				began := time.Now()
				if m, ok := comp.(flow.MetricsConsumer); ok && r.Accepts&batch.SignalMetrics != 0 {
					for _, at := range []int64{1735689600000, math.MaxInt64, math.MinInt64} {
						err := m.ConsumeMetrics(ctx, &batch.Metrics{
							Source: 1, T: []int64{1735689600000, at, 1735689600000}, V: []float64{1, math.Inf(1), 1},
							Series: []*batch.Series{series("good", before, "a"), series("hostile_total", "hostile", value), series("good", after, "a")},
						})
						if err != nil {
							t.Fatalf("%s: %v", kind, err)
						}
					}
					for _, b := range sink.Batches() {
						got.Write(batch.AppendText(nil, b))
					}
				}
				if l, ok := comp.(flow.LogsConsumer); ok && r.Accepts&batch.SignalLogs != 0 {
					b := &batch.Logs{Source: 1, T: []int64{1, 2, 3}, Line: []string{before, text, after}, Meta: make([][]batch.Label, 3)}
					b.Meta[1] = []batch.Label{{Name: "m", Value: value}}
					for i, job := range []string{before, "hostile", after} {
						host := "a"
						if i == 1 {
							host = value
						}
						b.Stream = append(b.Stream, handles.Intern([]batch.Label{{Name: "host", Value: host}, {Name: "job", Value: job}}, nil, time.Time{}))
					}
					if err := l.ConsumeLogs(ctx, b); err != nil {
						t.Fatalf("%s: %v", kind, err)
					}
					for _, b := range sink.Logs() {
						got.Write(batch.AppendLogsText(nil, b))
					}
				}
				if r.Sends&r.Accepts != 0 || r.Sends == 0 {
					got.WriteString(out.bodies.String())
					for _, record := range []string{before, after} {
						if !strings.Contains(got.String(), record) {
							t.Errorf("%s: the record %s did not get through", kind, record)
						}
					}
				}
				for line := range strings.Lines(n.Logs()[logged:]) {
					if strings.Contains(line, "script failed") {
						t.Errorf("%s: %.500s", kind, line)
					}
				}
				logged = len(n.Logs())
				if took := time.Since(began); took > 5*time.Second {
					t.Logf("%s took %s", kind, took)
				}
			}
		})
	}
}
