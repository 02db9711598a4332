package view_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/view"
)

func logs(t testing.TB, text string) *batch.Logs {
	t.Helper()
	b, err := batch.ParseLogsText(text, batch.TextOptions{Source: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func logsText(b *batch.Logs) string { return string(batch.AppendLogsTextAt(nil, b, 0)) }

const someLines = `{app="a",env="dev"} {"level":"debug","msg":"one","user":{"id":7}}
{app="a",env="prod"} {trace="t1"} {"level":"info","msg":"two"}
{app="b"} level=warn msg="three of them"
{app="b"} {trace="t2",zone=""} plain
`

// TestLogsEdits tests the result of each edit.
func TestLogsEdits(t *testing.T) {
	f := func(name string, edit func(m *view.Logs) error, want string) {
		t.Helper()
		g := newCache()
		defer g.Close()
		in := logs(t, someLines)
		m := new(view.Logs)
		m.Reset(in, g, start)
		if err := edit(m); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if diff := cmp.Diff(want, logsText(m.Apply().Batch)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(someLines, logsText(in)); diff != "" {
			t.Errorf("%s edited the source (-want +got):\n%s", name, diff)
		}
	}
	row := func(n int, text string) string {
		rows := strings.SplitAfter(someLines, "\n")
		rows[n] = text
		return strings.Join(rows, "")
	}

	f("nothing", func(*view.Logs) error { return nil }, someLines)
	f("drop_where labels", func(m *view.Logs) error { return m.DropWhere(`labels.app == "a"`) }, strings.Join(strings.SplitAfter(someLines, "\n")[2:], ""))
	f("drop_where line", func(m *view.Logs) error { return m.DropWhere(`labels.app == "a" && line contains "debug"`) }, row(0, ""))
	f("keep_where", func(m *view.Logs) error { return m.KeepWhere(`line matches "^level" || meta.trace == "t2"`) }, strings.Join(strings.SplitAfter(someLines, "\n")[2:], ""))
	f("drop_where time", func(m *view.Logs) error { return m.DropWhere(`time > 0 || "trace" in meta`) }, row(3, "")[:len(row(3, ""))-len(strings.SplitAfter(someLines, "\n")[2])-len(strings.SplitAfter(someLines, "\n")[1])]+strings.SplitAfter(someLines, "\n")[2])
	f("set_label", func(m *view.Logs) error { return m.SetLabelAll("app", "x") },
		strings.NewReplacer(`app="a"`, `app="x"`, `app="b"`, `app="x"`).Replace(someLines))
	f("promote json", func(m *view.Logs) error { return m.Promote("json.level", "level") },
		strings.NewReplacer(`env="dev"}`, `env="dev",level="debug"}`, `env="prod"}`, `env="prod",level="info"}`).Replace(someLines))
	f("promote number", func(m *view.Logs) error { return m.Promote("json.user.id", "user") }, strings.Replace(someLines, `env="dev"}`, `env="dev",user="7"}`, 1))
	f("promote logfmt", func(m *view.Logs) error { return m.Promote("logfmt.level", "level") }, row(2, `{app="b",level="warn"} level=warn msg="three of them"`+"\n"))
	f("promote meta", func(m *view.Logs) error { return m.Promote("meta.trace", "app") },
		strings.NewReplacer(`app="a",env="prod"`, `app="t1",env="prod"`, `{app="b"} {trace="t2"`, `{app="t2"} {trace="t2"`).Replace(someLines))
	f("promote twice", func(m *view.Logs) error {
		if err := m.Promote("json.level", "env"); err != nil {
			return err
		}
		return m.DropWhere(`labels.env != "info"`)
	}, `{app="a",env="info"} {trace="t1"} {"level":"info","msg":"two"}`+"\n")
	f("set_line", func(m *view.Logs) error {
		return m.SetLineAll("{{{labels.app}}} {json.msg}{logfmt.msg} {time} {ts} {meta.trace}|{line}")
	}, `{app="a",env="dev"} {a} one 0 0 |{"level":"debug","msg":"one","user":{"id":7}}
{app="a",env="prod"} {trace="t1"} {a} two 0 0 t1|{"level":"info","msg":"two"}
{app="b"} {b} three of them 0 0 |level=warn msg="three of them"
{app="b"} {trace="t2",zone=""} {b}  0 0 t2|plain
`)
	f("row", func(m *view.Logs) error {
		_ = m.SetLine(0, "new")
		m.Drop(1)
		if err := m.SetTime(2, 5); err != nil {
			return err
		}
		if err := m.SetTS(3, "1"); err != nil {
			return err
		}
		if err := m.SetMeta(0, "b", "2"); err != nil {
			return err
		}
		if err := m.SetMeta(0, "a", "1"); err != nil {
			return err
		}
		if err := m.SetMeta(3, "trace", ""); err != nil {
			return err
		}
		return m.SetLabel(3, "__name__", "n")
	}, `{app="a",env="dev"} {a="1",b="2"} new
{app="b"} @1970-01-01T00:00:00.005Z level=warn msg="three of them"
{__name__="n",app="b"} @1970-01-01T00:00:00.000000001Z {zone=""} plain
`)
	f("emit", func(m *view.Logs) error {
		r := m.Copy(1)
		r.Line, r.Labels = "copy", append(r.Labels, batch.Label{Name: "x", Value: "1"})
		if err := m.Emit(r); err != nil {
			return err
		}
		return m.Emit(view.LogRecord{Line: "made", Labels: []batch.Label{{Name: "z", Value: "1"}, {Name: "a", Value: "2"}, {Name: "gone"}}, T: 9})
	}, someLines+`{app="a",env="prod",x="1"} {trace="t1"} copy
{a="2",z="1"} @1970-01-01T00:00:00.000000009Z made
`)
	f("rolled back", func(m *view.Logs) error {
		m.Mark(3)
		_ = m.SetLine(3, "x")
		m.Drop(3)
		_ = m.SetLabel(3, "app", "x")
		_ = m.SetMeta(3, "trace", "x")
		_ = m.SetTime(3, 77)
		_ = m.Emit(m.Copy(3))
		m.Rollback()
		return nil
	}, someLines)
}

// TestLogsUntouchedColumns: Apply returns an unedited batch itself. The result
// for an edited batch shares the columns that were not edited.
func TestLogsUntouchedColumns(t *testing.T) {
	g := newCache()
	defer g.Close()
	in := logs(t, someLines)
	m := new(view.Logs)
	apply := func(edit func()) *batch.Logs {
		m.Reset(in, g, start)
		edit()
		return m.Apply().Batch
	}
	for name, edit := range map[string]func(){
		"nothing":               func() {},
		"drop none":             func() { _ = m.DropWhere(`labels.app == "none"`) },
		"same line":             func() { _ = m.SetLine(0, m.Line(0)) },
		"line, back":            func() { l := m.Line(0); _ = m.SetLine(0, "x"); _ = m.SetLine(0, l) },
		"same ms":               func() { _ = m.SetTime(0, 0) },
		"same label":            func() { _ = m.SetLabel(0, "app", "a") },
		"same meta":             func() { _ = m.SetMeta(1, "trace", "t1"); _ = m.SetMeta(1, "none", "") },
		"meta, back":            func() { _ = m.SetMeta(0, "a", "t1"); _ = m.SetMeta(0, "a", "") },
		"rolled back":           func() { m.Mark(1); _ = m.SetLine(1, "x"); _ = m.SetMeta(1, "y", "x"); m.Drop(1); m.Rollback() },
		"same line by template": func() { _ = m.SetLineAll("{line}") },
	} {
		if got := apply(edit); got != in {
			t.Errorf("%s: another batch came out", name)
		}
	}
	out := apply(func() { _ = m.SetLabelAll("x", "1") })
	if out == in || &out.Line[0] != &in.Line[0] || &out.T[0] != &in.T[0] || &out.Meta[0] != &in.Meta[0] {
		t.Error("labels: a column is not shared")
	}
	if again := apply(func() { _ = m.SetLabelAll("x", "1") }); !slices.Equal(again.Stream, out.Stream) {
		t.Error("labels: other handles came out")
	}
	if out = apply(func() { _ = m.SetLine(0, "x") }); &out.Stream[0] != &in.Stream[0] || &out.Meta[0] != &in.Meta[0] {
		t.Error("line: a column is not shared")
	}
}

// TestStreamHook: the hook is called once per stream, and its decision is
// cached.
func TestStreamHook(t *testing.T) {
	g := newCache()
	defer g.Close()
	in := logs(t, someLines)
	m := new(view.Logs)
	var asked []string
	run := func() string {
		m.Reset(in, g, start)
		err := m.RunSeries(func(_ int, s *view.Series) error {
			asked = append(asked, s.Label("app")+s.Label("env"))
			if s.Label("env") == "dev" {
				s.Drop()
				return nil
			}
			return s.SetLabel("seen", "1")
		})
		if err != nil {
			t.Fatal(err)
		}
		return logsText(m.Apply().Batch)
	}
	want := strings.NewReplacer(`env="prod"`, `env="prod",seen="1"`, `{app="b"}`, `{app="b",seen="1"}`).Replace(strings.Join(strings.SplitAfter(someLines, "\n")[1:], ""))
	for range 2 {
		if diff := cmp.Diff(want, run()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"adev", "aprod", "b"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestLogsMistakes(t *testing.T) {
	g := newCache()
	defer g.Close()
	m := new(view.Logs)
	m.Reset(logs(t, someLines), g, start)
	f := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	f(m.Promote("level", "level"), `cannot promote "level": say where it stands: json.level, logfmt.level or meta.level`)
	f(m.Promote("nope.x", "level"), `cannot use field "nope.x": there is line, time, ts`)
	f(m.Promote("json.level", ""), "cannot use an empty label name")
	f(m.Promote("logfmt.a b", "x"), `cannot use "a b" as a key of logfmt`)
	f(m.Promote("json."+strings.Repeat("a.", 16)+"a", "x"), "more than 16 names")
	f(m.SetLineAll("{"), `the brace at 1 is not closed`)
	f(m.SetLineAll("x}"), `the brace at 2 closes nothing`)
	f(m.SetLineAll("{}"), `cannot use an empty field`)
	f(m.SetLineAll(`{"a":1}`), `a brace of the text is written {{`)
	f(m.SetLineAll(strings.Repeat("x", 70_000)), "cannot use a template of 70000 bytes")
	f(m.SetLineAll(strings.Repeat("{line}", 33)), "cannot use a template with 33 fields")
	f(m.SetTime(0, 1<<62), "cannot set time to 4611686018427387904")
	f(m.SetTS(0, "1.5"), `cannot set ts to "1.5"`)
	f(m.SetMeta(0, "", "x"), "cannot use an empty name in metadata")
	f(m.SetMeta(0, "a", "\xff"), "not valid UTF-8")
	f(m.DropWhere("value > 3"), "a log line has no value: there is line, labels, meta, time and args")
	f(m.DropWhere("line"), "it must be true or false")
	f(m.Emit(view.LogRecord{Meta: []batch.Label{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}}), `cannot use metadata "a" twice`)
	f(g.Check("line contains 'x'", expr.Bool), "a sample has no line")
	if err := g.CheckLogs("line contains 'x'"); err != nil {
		t.Error(err)
	}
	_, err := m.Projection("json", nil)
	f(err, "cannot read 0 fields")
}

// TestLateStreams: when streams end, the handles that were derived from them
// are released.
func TestLateStreams(t *testing.T) {
	g := newCache()
	in := logs(t, someLines)
	m := new(view.Logs)
	m.Reset(in, g, start)
	if err := m.Promote("json.level", "level"); err != nil {
		t.Fatal(err)
	}
	out := m.Apply().Batch
	m.Done()
	if m.Len() != 0 {
		t.Error("the window holds rows after Done")
	}
	for _, s := range in.Stream {
		s.Release()
	}
	g.Sweep()
	if !out.Stream[0].Released() {
		t.Error("a derived stream outlives its source")
	}
	g.Close()
}

func TestProjection(t *testing.T) {
	g := newCache()
	defer g.Close()
	m := new(view.Logs)
	m.Reset(logs(t, someLines), g, start)
	p, err := m.Projection("", []string{"app", "json.level", "json.user", "logfmt.msg", "meta.trace", "line", "time", "ts", "json.level", "labels.env"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range m.Len() {
		var row []string
		for _, c := range m.Read(p, i, nil) {
			switch {
			case c.Fixed != nil:
				row = append(row, *c.Fixed)
			case c.Value.Kind == view.Missing:
				row = append(row, "-")
			case c.Value.Kind == view.Number:
				row = append(row, fmt.Sprint(c.Value.Num))
			default:
				row = append(row, c.Value.Text)
			}
		}
		got = append(got, strings.Join(row, " "))
	}
	want := []string{
		`a debug {"id":7} - - {"level":"debug","msg":"one","user":{"id":7}} 0 0 debug dev`,
		`a info - - t1 {"level":"info","msg":"two"} 0 0 info prod`,
		`b - - three of them - level=warn msg="three of them" 0 0 - -`,
		`b - - - t2 plain 0 0 - -`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A line counts once for each record that it is set on, even if the text is the
// same, because it is also written once for each.
func TestLinesAreBounded(t *testing.T) {
	const rows = 100
	in := logs(t, strings.Repeat("{job=\"a\"} x\n", rows))
	var m view.Logs
	g := view.NewCache(view.Options{MaxMade: 1 << 20})
	big := strings.Repeat("x", 64<<10)
	f := func(name string, do func(i int) error) {
		t.Helper()
		m.Reset(in, g, time.Time{})
		for i := range rows {
			if err := do(i); err != nil {
				if !errors.Is(err, view.ErrTooMuch) || !strings.Contains(err.Error(), "script.limits.output") || i < 5 || i > 30 {
					t.Errorf("%s: after %d: %v", name, i, err)
				}
				return
			}
		}
		t.Errorf("%s is not bounded", name)
	}
	f("a line", func(i int) error { return m.SetLine(i, big) })
	f("a line again and again", func(i int) error { return m.SetLine(0, big[:len(big)-i%2]) })
	f("metadata", func(i int) error { return m.SetMeta(i, "k", big) })
	f("a label", func(i int) error { return m.SetLabel(i, "k", big) })
	f("emitted lines", func(int) error { return m.Emit(view.LogRecord{Line: big}) })
	f("all lines", func(int) error { return m.SetLineAll(big[:2000]) })
}
