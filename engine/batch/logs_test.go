package batch_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
)

var oddLines = append([]string{
	"level=info msg=hi", `{"level":"info"}`, `{a="b"} x`, `{ "q" = "b"}`, "{}", "{a", "@2025-01-01T00:00:00Z x", "@", "# x", "x # y",
	" x", "x ", "x\t", "\tx", "x\r", "x\r\n", "\u00a0x", "é", strings.Repeat("long ", 1000), `\n`, `C:\dir`,
}, oddStrings...)

func (r random) stream() *batch.Stream { return batch.NewSeries(r.labels()) }

func (r random) meta() []batch.Label {
	var out []batch.Label
	for range r.IntN(3) {
		n := pick(r, oddStrings)
		if !slices.ContainsFunc(out, func(l batch.Label) bool { return l.Name == n }) {
			out = append(out, batch.Label{Name: n, Value: pick(r, oddStrings)})
		}
	}
	slices.SortFunc(out, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (r random) logs(rows int) *batch.Logs {
	b := &batch.Logs{Source: r.Uint64()}
	some := false
	for i := range rows {
		if i > 0 && r.IntN(3) == 0 {
			b.Stream = append(b.Stream, b.Stream[r.IntN(i)])
		} else {
			b.Stream = append(b.Stream, r.stream())
		}
		b.T, b.Line = append(b.T, pick(r, oddTimes)), append(b.Line, pick(r, oddLines))
		b.Meta = append(b.Meta, r.meta())
		some = some || len(b.Meta[i]) > 0
	}
	if !some {
		b.Meta = nil
	}
	return b
}

func TestLogsTextRoundTripsEverything(t *testing.T) {
	for seed := range uint64(3000) {
		want := newRandom(seed).logs(int(seed % 12))
		text := batch.AppendLogsText(nil, want)
		got, err := batch.ParseLogsText(string(text), batch.TextOptions{T: 77, Source: want.Source})
		if err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, text)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s\n%s", seed, diff, text)
		}
	}
}

// The text on the left is parsed and written again. The text on the right is
// the result.
func TestLogsTextForm(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		b, err := batch.ParseLogsText(in, batch.TextOptions{T: 9})
		if err != nil {
			t.Errorf("cannot parse %q: %v", in, err)
			return
		}
		if got := string(batch.AppendLogsTextAt(nil, b, 9)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", in, got, want)
		}
	}

	// streams
	f(`{app="x"} hi`, "{app=\"x\"} hi\n")
	f(" { b = \"2\" , a=\"1\" , gone=\"\" }  hi there \r\n", "{a=\"1\",b=\"2\"} hi there\n")
	f(`{} hi`, "{} hi\n")
	f(`{"my label"="x",__name__="n"} hi`, `{__name__="n","my label"="x"} hi`+"\n")
	f("# nothing\n\n{} hi", "{} hi\n")

	// times
	f(`{} @2025-01-01T00:00:00.000000001Z hi`, "{} @2025-01-01T00:00:00.000000001Z hi\n")
	f(`{} @2025-01-01T01:00:00+01:00 hi`, "{} @2025-01-01T00:00:00Z hi\n")
	f(`{} @1970-01-01T00:00:00.000000009Z hi`, "{} hi\n")
	f(`{} 2025-01-01T00:00:00Z hi`, "{} 2025-01-01T00:00:00Z hi\n")

	// metadata
	f(`{} {b="2", a=""} hi`, `{} {a="",b="2"} hi`+"\n")
	f(`{} {"b c"="2"} hi`, `{} {"b c"="2"} hi`+"\n")
	f(`{} {"level":"warn"}`, `{} {"level":"warn"}`+"\n")
	f(`{} {}`, "{} {}\n")
	f(`{} "{a=\"b\"} x"`, `{} "{a=\"b\"} x"`+"\n")

	// lines
	f(`{} ""`, `{} ""`+"\n")
	f(`{} "hi"`, "{} hi\n")
	f(`{} "a\nb\xff\x00"`, `{} "a\nb\xff\x00"`+"\n")
	f(`{} " a "`, `{} " a "`+"\n")
	f(`{} a "b" \n`, `{} a "b" \n`+"\n")
}

func TestLogsTextMistakes(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		b, err := batch.ParseLogsText(in, batch.TextOptions{})
		if err == nil {
			t.Errorf("%q: no error, got %s", in, batch.AppendLogsText(nil, b))
		} else if err.Error() != want {
			t.Errorf("%q: got %q, want %q", in, err, want)
		}
	}

	f("{} x\nup 1", `2:1: want a stream such as {app="api"}, have "up 1"`)
	f(`{a="1",a="2"} x`, `1:1: label a appears twice`)
	f(`{a=1} x`, `1:4: want a string in double quotes`)
	f(`{"a"} x`, `1:5: want = after label a`)
	f(`{} {a="1",a="2"} x`, `1:4: label a appears twice`)
	f(`{}`, `1:3: want the line; an empty one is ""`)
	f(`{} {a="1"}`, `1:11: want the line; an empty one is ""`)
	f(`{} @yesterday x`, `1:5: want a time such as @2025-01-01T00:00:00.000000001Z, have "@yesterday"`)
	f(`{} @9999-01-01T00:00:00Z x`, `1:5: want a time such as @2025-01-01T00:00:00.000000001Z, have "@9999-01-01T00:00:00Z"`)
	f(`{} "a" b`, `1:8: unexpected "b" after the line, which is in quotes from its first to its last byte`)
	f(`{} "a`, `1:4: bad string "a`)
	f(`{} # x`, `1:4: a line that begins with # is written in double quotes`)
}

func TestLogsTextHandles(t *testing.T) {
	in := batch.NewInterner(0)
	o := batch.TextOptions{Series: func(ls []batch.Label, m *batch.Metadata) *batch.Series { return in.Intern(ls, m, epoch) }}
	x, err := batch.ParseLogsText("{a=\"1\"} x\n{a=\"1\"} y", o)
	if err != nil {
		t.Fatal(err)
	}
	y, err := batch.ParseLogsText("{a=\"1\"} z", o)
	if err != nil {
		t.Fatal(err)
	}
	if x.Stream[0] != x.Stream[1] || x.Stream[0] != y.Stream[0] {
		t.Error("one stream got two handles")
	}
}

// TestLogsParts: selected rows keep all their columns. Unchanged data is
// shared.
func TestLogsParts(t *testing.T) {
	text := func(b *batch.Logs) []string {
		return slices.Collect(strings.Lines(string(batch.AppendLogsText(nil, b))))
	}
	for seed := range uint64(300) {
		r := newRandom(seed)
		b := r.logs(r.IntN(12))
		all := text(b)
		var rows []int
		var want []string
		become := make([]*batch.Stream, b.Len())
		for i := range b.Len() {
			if r.IntN(3) > 0 {
				rows, want = append(rows, i), append(want, all[i])
				become[i] = b.Stream[i]
			}
		}
		for name, got := range map[string]*batch.Logs{
			"Rows":   b.Rows(rows),
			"Select": b.Select(func(i int) bool { return slices.Contains(rows, i) }),
			"Change": batch.NewChange(b.Stream, slices.Clone(become)).ApplyLogs(b),
		} {
			if diff := cmp.Diff(want, text(got)); diff != "" {
				t.Fatalf("seed %d, %s (-want +got):\n%s", seed, name, diff)
			}
			if len(rows) == b.Len() && got != b && name != "Rows" {
				t.Errorf("seed %d, %s: all rows are another batch", seed, name)
			}
			if got.Source != b.Source {
				t.Errorf("%s lost the source", name)
			}
		}
	}
	b := newRandom(5).logs(4)
	other := newRandom(6).stream()
	got := batch.NewChange(b.Stream, []*batch.Stream{other, b.Stream[1], b.Stream[2], b.Stream[3]}).ApplyLogs(b)
	if got.Stream[0] != other || &got.Line[0] != &b.Line[0] || &got.T[0] != &b.T[0] {
		t.Error("a change of streams does not share the other columns")
	}
	if a := b.Along(3); a.Origin() == b.Origin() || &a.Line[0] != &b.Line[0] {
		t.Error("Along is not the batch by another way")
	}
}

func FuzzParseLogsText(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(string(batch.AppendLogsText(nil, newRandom(seed).logs(5))))
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := batch.ParseLogsText(text, batch.TextOptions{T: math.MinInt64})
		if err != nil {
			return
		}
		once := batch.AppendLogsText(nil, b)
		again, err := batch.ParseLogsText(string(once), batch.TextOptions{})
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, once)
		}
		if diff := cmp.Diff(b, again, same); diff != "" {
			t.Fatalf("(-first +second)\n%s\n%s", diff, once)
		}
	})
}

func ExampleParseLogsText() {
	b, err := batch.ParseLogsText(`
{app="api"} @2025-01-01T00:00:00.000000001Z {trace_id="a1"} level=info msg="started"
{app="api"} {"level":"warn"}
`, batch.TextOptions{T: 1735689600000000000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Len(), b.Stream[0].Label("app"), b.Stream[0] == b.Stream[1], b.Meta[0][0].Value, b.Line[1])
	fmt.Print(string(batch.AppendLogsTextAt(nil, b, 1735689600000000000)))
	// Output:
	// 2 api true a1 {"level":"warn"}
	// {app="api"} @2025-01-01T00:00:00.000000001Z {trace_id="a1"} level=info msg="started"
	// {app="api"} {"level":"warn"}
}
