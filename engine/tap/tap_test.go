package tap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/tap"
)

// batches parses both signals: texts that begin with { are log lines.
func batches(t *testing.T, texts ...string) (b flow.Batches) {
	t.Helper()
	for _, text := range texts {
		if strings.HasPrefix(text, "{") {
			l, err := batch.ParseLogsText(text, batch.TextOptions{T: 5})
			if err != nil {
				t.Fatal(err)
			}
			b.Logs = append(b.Logs, l)
			continue
		}
		m, err := batch.ParseText(text, batch.TextOptions{T: 5})
		if err != nil {
			t.Fatal(err)
		}
		b.Metrics = append(b.Metrics, m)
	}
	return b
}

func newPrinter(t *testing.T, o tap.Options, where string) *tap.Printer {
	t.Helper()
	if where != "" {
		progs, err := expr.CompileEither(where, expr.Bool, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Where = &progs
	}
	p, err := tap.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantText(t *testing.T, got []byte, want string) {
	t.Helper()
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A comparison shows how each record changed.
func TestDiff(t *testing.T) {
	f := func(where string, in, out flow.Batches, want string) {
		t.Helper()
		p := newPrinter(t, tap.Options{Side: flow.Calls, Format: "text"}, where)
		dst := p.Append(nil, flow.Tapped{Time: time.Unix(7, 0), In: in, Out: out})
		wantText(t, p.Tick(dst), want)
	}
	text := func(texts ...string) flow.Batches { return batches(t, texts...) }
	// Nothing changed, whatever the order.
	f("", text("a 1\nb 2\n"), text("b 2\na 1\n"), "# note: unchanged records: 2\n")
	// Labels, the name, the value, the time.
	f("", text(`a{x="1",y="2",z="3"} 1`+"\n"), text(`a{x="1",y="3",w="4"} 1`+"\n"),
		`~ a{x="1",y="2",z="3"} 1 5 : w="4" added, y="2" → "3", z="3" removed`+"\n")
	f("", text("a 1\n"), text("b 1\n"), `~ a 1 5 : __name__="a" → "b"`+"\n")
	f("", text("a 1\n"), text("a 2 2000\n"), "~ a 1 5 : time 1970-01-01T00:00:00.005Z → 1970-01-01T00:00:02Z, value 1 → 2\n")
	f("", text("a 1\n"), text("a 1 2000\n"), "~ a 1 5 : time 1970-01-01T00:00:00.005Z → 1970-01-01T00:00:02Z\n")
	f("", text(`a{x="1",y="2"} 1`+"\n"), text(`b{x="1",y="2"} 3`+"\n"), `~ a{x="1",y="2"} 1 5 : __name__="a" → "b", value 1 → 3`+"\n")
	// Several candidates: the most similar one.
	f("", text("a{x=\"1\"} 0\na{x=\"2\"} 0\n"), text("b{x=\"2\"} 0\n"),
		"- a{x=\"1\"} 0 5\n~ a{x=\"2\"} 0 5 : __name__=\"a\" → \"b\"\n")
	f("", text("a{k=\"1\",x=\"1\"} 0\na{k=\"1\",x=\"2\"} 0\n"), text("b{k=\"1\"} 0\n"),
		"~ a{k=\"1\",x=\"1\"} 0 5 : __name__=\"a\" → \"b\", x=\"1\" removed\n- a{k=\"1\",x=\"2\"} 0 5\n")
	f("", text("a 1 5\na 2 6\n"), text("a 2 9\n"),
		"- a 1 5\n~ a 2 6 : time 1970-01-01T00:00:00.006Z → 1970-01-01T00:00:00.009Z\n")
	f("", text("a 1\nc 1\n"), text("b 1\n"), "- a 1 5\n- c 1 5\n+ b 1 5\n")
	// Dropped and added; a sum is not one of its parts.
	f("", text("a{x=\"1\"} 1\na{x=\"2\"} 2\n"), text("sum 3\n"), "- a{x=\"1\"} 1 5\n- a{x=\"2\"} 2 5\n+ sum 3 5\n")
	// The example of docs/operating.md.
	f("", text(`http_requests_total{instance="10.0.0.7:80",job="api"} 12 1700000000000`+"\n"+`http_request_errors_total{instance="10.0.0.7:80",job="api"} 3 1700000000000`+"\n"),
		text(`http_error_ratio{env="prod",instance="web-1",job="api"} 0.25 1700000000000`+"\n"+`http_requests_total{env="prod",instance="web-1",job="api"} 12 1700000000000`+"\n"),
		`~ http_requests_total{instance="10.0.0.7:80",job="api"} 12 1700000000000 : env="prod" added, instance="10.0.0.7:80" → "web-1"`+"\n"+
			`- http_request_errors_total{instance="10.0.0.7:80",job="api"} 3 1700000000000`+"\n"+`+ http_error_ratio{env="prod",instance="web-1",job="api"} 0.25 1700000000000`+"\n")
	f("", text("a stale\n"), text(), "- a stale 5\n")
	// A sample does not become a staleness marker.
	f("", text("a 1\n"), text("a stale\n"), "- a 1 5\n+ a stale 5\n")
	f("", text("a stale\n"), text("a{x=\"1\"} stale\n"), "~ a stale 5 : x=\"1\" added\n")
	f("", text("a {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]}\n"), text("b {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]}\n"),
		"~ a {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]} 5 : __name__=\"a\" → \"b\"\n")
	// Log lines.
	f("", text("{app=\"x\"} one\n{app=\"x\"} {id=\"1\"} two\n"), text("{app=\"y\"} one\n{app=\"x\"} {id=\"2\"} 2\n"),
		`~ {app="x"} @1970-01-01T00:00:00.000000005Z one : app="x" → "y"`+"\n"+
			`~ {app="x"} @1970-01-01T00:00:00.000000005Z {id="1"} two : metadata id="1" → "2", line "two" → "2"`+"\n")
	f("", text("{app=\"x\"} one\n"), text("lines 1\n"), "- {app=\"x\"} @1970-01-01T00:00:00.000000005Z one\n+ lines 1 5\n")
	// The expression selects a record by what it was or has become.
	f(`name == "b"`, text("a 1\nc 2\nd 3\n"), text("b 1\nc 9\nd 3\n"), "~ a 1 5 : __name__=\"a\" → \"b\"\n")
	f(`name == "d"`, text("a 1\nd 3\n"), text("d 3\n"), "# note: unchanged records: 1\n")
	// Outputs without a call.
	f("", flow.Batches{}, text("a 1\n"), "+ a 1 5\n")
}

func TestWhere(t *testing.T) {
	f := func(where, in, want string) {
		t.Helper()
		p := newPrinter(t, tap.Options{Format: "text"}, where)
		dst := p.Append(nil, flow.Tapped{In: batches(t, in)})
		wantText(t, p.Tick(dst), want)
	}
	f(`labels.x == "1" && value > 1`, "a{x=\"1\"} 1\na{x=\"1\"} 2\na{x=\"2\"} 3\na{x=\"1\"} stale\n", "a{x=\"1\"} 2 5\na{x=\"1\"} stale 5\n")
	f(`line contains "one"`, "{a=\"b\"} one\n{a=\"b\"} two\n", "{a=\"b\"} @1970-01-01T00:00:00.000000005Z one\n")
	f(`line contains "one"`, "a 1\n", "")
	f(`int(labels.x) > 1`, "a{x=\"no\"} 1\na{x=\"2\"} 2\n", "a{x=\"2\"} 2 5\n# note: records for which the expression fails do not match: cannot use expression: "+
		`int("no"): it is no whole number (1:1)  | int(labels.x) > 1  | ^`+"\n")
}

func TestFormats(t *testing.T) {
	f := func(o tap.Options, b flow.Tapped, want string) {
		t.Helper()
		p := newPrinter(t, o, "")
		b.Time = time.Unix(7, 0)
		wantText(t, p.Note(p.Append(nil, b), "end", "it is over"), want)
	}
	metrics := batches(t, "# TYPE a gauge\n# HELP a An a.\na{x=\"1\"} NaN\na{x=\"2\"} stale\n")
	f(tap.Options{Format: "text"}, flow.Tapped{In: metrics}, "a{x=\"1\"} NaN 5\na{x=\"2\"} stale 5\n# end: it is over\n")
	f(tap.Options{Format: "exposition"}, flow.Tapped{In: metrics}, "# TYPE a gauge\n# HELP a An a.\na{x=\"1\"} NaN 5\na{x=\"2\"} stale 5\n# end: it is over\n")
	f(tap.Options{Format: "json"}, flow.Tapped{In: metrics},
		`{"kind":"record","time":"1970-01-01T00:00:07Z","record":{"name":"a","labels":{"x":"1"},"value":"NaN","type":"gauge","time":"1970-01-01T00:00:00.005Z"}}`+"\n"+
			`{"kind":"record","time":"1970-01-01T00:00:07Z","record":{"name":"a","labels":{"x":"2"},"value":"stale","type":"gauge","time":"1970-01-01T00:00:00.005Z"}}`+"\n"+
			`{"kind":"end","text":"it is over"}`+"\n")
	f(tap.Options{Format: "json", Side: flow.Calls}, flow.Tapped{In: batches(t, "{a=\"b\"} {m=\"1\"} one\n"), Out: batches(t, "{a=\"b\"} two\n")},
		`{"kind":"changed","time":"1970-01-01T00:00:07Z","record":{"labels":{"a":"b"},"line":"one","meta":{"m":"1"},"time":"1970-01-01T00:00:00.000000005Z"},`+
			`"becomes":{"labels":{"a":"b"},"line":"two","time":"1970-01-01T00:00:00.000000005Z"},"changes":["metadata m=\"1\" removed","line \"one\" → \"two\""]}`+"\n"+
			`{"kind":"end","text":"it is over"}`+"\n")
	for _, o := range []tap.Options{{Format: "yaml"}, {Side: flow.Calls, Format: "exposition"}} {
		if _, err := tap.New(o); err == nil {
			t.Errorf("%v is accepted", o)
		}
	}
}

// Secrets appear neither in labels, values, lines, metadata and exemplars, nor in
// the description of a change.
func TestMask(t *testing.T) {
	in := batches(t, "a{x=\"hunter2\",y=\"abc\",z=\"xabc\"} 1 5 # {key=\"hunter2\"} 1\n", "{a=\"hunter2\"} {m=\"a hunter2\"} my hunter2!\n")
	out := batches(t, "a{x=\"hunter2!\"} 1\n", "{a=\"1\"} {m=\"2\"} my hunter2!\n")
	for _, o := range []tap.Options{{Format: "text"}, {Format: "json"}, {Format: "exposition"}, {Format: "text", Side: flow.Calls}, {Format: "json", Side: flow.Calls}} {
		p := newPrinter(t, o, "")
		p.Mask([]string{"abc", "hunter2"})
		got := string(p.Append(nil, flow.Tapped{In: in, Out: out}))
		if strings.Contains(got, "hunter2") || strings.Contains(got, `"abc"`) || !strings.Contains(got, "xabc") || !strings.Contains(got, "my (secret)!") {
			t.Errorf("%v: got %s", o, got)
		}
	}
	if got := in.Metrics[0].Series[0].Label("x"); got != "hunter2" {
		t.Errorf("the batch was modified: x = %q", got)
	}
	p := newPrinter(t, tap.Options{Format: "text"}, "")
	p.Mask([]string{"hunter2"})
	wantText(t, p.Note(nil, "note", "no hunter2 at http://x/?a=b\n"), "# note: no (secret) at http://x/?a=(hidden) \n")
}

func TestLimits(t *testing.T) {
	p := newPrinter(t, tap.Options{Format: "text", Limit: 2}, `name != "a"`)
	dst := p.Append(nil, flow.Tapped{In: batches(t, "a 1\nb 1\n")})
	if p.Full() {
		t.Error("it is full after one record")
	}
	dst = p.Append(dst, flow.Tapped{In: batches(t, "c 1\nd 1\n")})
	wantText(t, p.Tick(dst), "b 1 5\nc 1 5\n")
	if !p.Full() {
		t.Error("it is not full after two records")
	}

	// A lower rate; the rest of the second is not examined.
	p = newPrinter(t, tap.Options{Format: "text", Rate: 2}, `int(labels.x) > 0`)
	dst = p.Append(nil, flow.Tapped{In: batches(t, "a{x=\"1\"} 1\nb{x=\"1\"} 1\n")})
	dst = p.Append(dst, flow.Tapped{In: batches(t, "c{x=\"bad\"} 1\n")})
	wantText(t, p.Tick(dst), "a{x=\"1\"} 1 5\nb{x=\"1\"} 1 5\n# note: records left out: 1 (at most 2 a second are shown)\n")

	many := batches(t, strings.Repeat("a 1\n", tap.MaxRate+10))
	for _, side := range []flow.Side{flow.In, flow.Calls} {
		p = newPrinter(t, tap.Options{Format: "text", Side: side}, "")
		if n := strings.Count(string(p.Append(nil, flow.Tapped{In: many})), "\n"); n != tap.MaxRate {
			t.Errorf("%d: got %d records, want %d", side, n, tap.MaxRate)
		}
		p.Skip(5)
		want := "# note: records left out: 10 (at most 1000 a second are shown)\n# note: records left out without examining them: 5 (there were too many)\n"
		wantText(t, p.Tick(nil), want)
		wantText(t, p.Tick(nil), "")
		if n := strings.Count(string(p.Append(nil, flow.Tapped{In: batches(t, "a 1\n")})), "\n"); n != 1 {
			t.Errorf("%d: got %d records in the next second, want 1", side, n)
		}
	}
}

// The format calls has whole calls, or the selected part of their input.
func TestCalls(t *testing.T) {
	f := func(o tap.Options, where, want string, calls ...flow.Tapped) {
		t.Helper()
		o.Side, o.Format = flow.Calls, tap.FormatCalls
		p := newPrinter(t, o, where)
		p.Mask([]string{"hunter2"})
		var got []byte
		for _, c := range calls {
			c.Began, c.Time = time.Unix(1, 0), time.Unix(2, 0)
			got = p.Append(got, c)
		}
		wantText(t, p.Tick(got), want)
	}
	in := batches(t, "a{x=\"hunter2\"} 1\nb 2\n")
	call := flow.Tapped{In: in, Out: batches(t, "a{x=\"hunter2\"} 2\n")}
	const begin = `{"kind":"call","began":"1970-01-01T00:00:01Z","ended":"1970-01-01T00:00:02Z","in":`
	f(tap.Options{}, "", begin+`"a{x=\"(secret)\"} 1 5\nb 2 5\n","out":"a{x=\"(secret)\"} 2 5\n"}`+"\n", call)
	f(tap.Options{}, `name == "b"`, begin+`"b 2 5\n","out":"","partial":true}`+"\n", call)
	f(tap.Options{}, `name == "c"`, "", call)
	f(tap.Options{Limit: 1}, "", begin+`"a{x=\"(secret)\"} 1 5\nb 2 5\n","out":"a{x=\"(secret)\"} 2 5\n","outside":2}`+"\n",
		flow.Tapped{Out: in}, call, call)
	f(tap.Options{}, "", begin+`"{app=\"x\"} @1970-01-01T00:00:00.000000005Z y\n","out":""}`+"\n", flow.Tapped{In: batches(t, `{app="x"} y`)})
	f(tap.Options{}, "", `{"kind":"note","text":"records left out: 1001 (at most 1000 a second are shown)"}`+"\n",
		flow.Tapped{In: batches(t, strings.Repeat("a 1\n", tap.MaxRate+1))})
	if _, err := tap.New(tap.Options{Side: flow.In, Format: tap.FormatCalls}); err == nil {
		t.Error("the format calls works without calls")
	}
}
