package scripttest_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

const (
	snapLua = "scripts/a/__snapshots__/mark_test.lua.snap"
	snapTS  = "scripts/a/__snapshots__/mark.test.ts.snap"
)

const marked = `
-- scripts/a/mark.lua --
local weir = require "weir"
return weir.transform { series = function(s) s.labels.mark = "x" end }
`

// writing are options with which snapshots are written.
func writing(update bool) scripttest.Options {
	o := options()
	o.Write = func(path, content string) error {
		if content == "" {
			return os.Remove(path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(content), 0o644)
	}
	if update {
		o.Update = func(string, string) error { return errors.New("no example may be rewritten") }
	}
	return o
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The first run writes snapshots of every kind of value, and the next one compares
// them and writes nothing.
func TestSnapshotsAreWritten(t *testing.T) {
	write(t, archive(marked+`
-- scripts/a/mark_test.lua --
local t = weir.test.component("mark.lua")
it("marks", function()
  local out = t:metrics [[
# TYPE up gauge
up{job="b"} 1
up{job="a"} 2 5000
]]
  assert.snapshot(out)
  assert.snapshot(out:label_values("mark"), "labels")
  assert.snapshot(t:metrics "up 3")
end)
describe("values", function()
  it("in\ntwo lines ", function() assert.snapshot("one\ntwo\n") end)
  it("nested", function()
    assert.snapshot { name = "a name that is long enough for more than one line", ["no-key"] = { 1, 2.5, -0.5 }, ["end"] = true, at = { x = "\0\"" } }
    assert.matches("x", "x")
  end)
  it("nothing", function() assert.snapshot(nil) end)
  it("empty", function() assert.snapshot(t:metrics "") end)
end)
-- scripts/a/mark.test.ts --
-- scripts/b/other.test.ts --
import { component, expect, it } from "weir/test";
const t = component("../a/mark.lua");
it("marks", () => { expect(t.metrics("up 1")).toMatchSnapshot(); });
it("values", async () => {
  expect({ b: 1, a: ["x", null, undefined], m: new Map([["k", -0]]) }).toMatchSnapshot("an object");
  expect("text").toMatchSnapshot();
  expect(Array.from({ length: 1200 }, (_, i) => i)).toMatchSnapshot("a long list");
  await expect(Promise.resolve(7)).resolves.toMatchSnapshot();
});
`))
	if err := os.Remove("scripts/a/mark.test.ts"); err != nil {
		t.Fatal(err)
	}
	r := run(t, writing(false))
	if !r.OK() {
		t.Fatalf("got %v, %+v", ends(r), r.Files)
	}
	if got, want := r.Files[0].Snapshots.String(), "7 snapshots written"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want := `# Snapshots of mark_test.lua. Do not edit: "weir test --update" writes them again.

=== marks 1
  # TYPE up gauge
  up{job="a",mark="x"} 2 5000
  up{job="b",mark="x"} 1

=== marks 2
  up{mark="x"} 3

=== marks > labels 1
  { "x" }

=== values empty 1

=== "values in\ntwo lines  1"
  """
  one
  two

  """

=== values nested 1
  {
    at = { x = "\000\"" },
    ["end"] = true,
    name = "a name that is long enough for more than one line",
    ["no-key"] = { 1, 2.5, -0.5 },
  }

=== values nothing 1
  nil
`
	text := content(t, snapLua)
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ts := content(t, "scripts/b/__snapshots__/other.test.ts.snap")
	for _, part := range []string{
		"=== marks 1\n  up{mark=\"x\"} 1\n", "=== values 1\n  \"text\"\n", "=== values 2\n  7\n",
		"=== values > an object 1\n  { a: [\"x\", null, undefined], b: 1, m: Map { \"k\" => -0 } }\n", "  1199,\n",
	} {
		if !strings.Contains(ts, part) {
			t.Errorf("no %q in\n%.400s", part, ts)
		}
	}
	// The second run writes nothing, neither with faults nor with CRLF.
	for name, change := range map[string]func(o *scripttest.Options){
		"again":    func(*scripttest.Options) {},
		"chaos":    func(o *scripttest.Options) { o.Chaos, o.Match = true, regexp.MustCompile("values") }, // without staleness markers
		"one test": func(o *scripttest.Options) { o.Match = regexp.MustCompile("values n") },
		"CRLF": func(*scripttest.Options) {
			if err := os.WriteFile(snapLua, []byte(strings.ReplaceAll(text, "\n", "\r\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		o := options()
		change(&o)
		if r := run(t, o); !r.OK() || r.Files[0].Snapshots.String() != "" {
			t.Errorf("%s: got %v, %q, %+v", name, ends(r), r.Files[0].Snapshots, r.Files[0].Problem)
		}
	}
}

// A snapshot that differs fails with the difference and is updated; obsolete ones are
// reported and removed, unless their test did not reach them.
func TestSnapshotsDiffer(t *testing.T) {
	test := func(body string) {
		t.Helper()
		if err := os.WriteFile("scripts/a/mark_test.lua", []byte("local t = weir.test.component('mark.lua')\n"+body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(t, archive(marked+"-- scripts/a/mark_test.lua --\n"))
	test("it('a', function() assert.snapshot(t:metrics 'up 1') end)\nit('b', function() assert.snapshot(1) assert.snapshot(2) end)\n")
	run(t, writing(false))
	before := content(t, snapLua)

	test("it('a', function() assert.snapshot(t:metrics 'up 2') end)\nit('b', function() assert.snapshot(1) end)\n")
	r := run(t, writing(false))
	p := r.Files[0].Tests[0].Problem
	if p == nil || p.Msg != `the snapshot "a 1" differs; if the new value is correct, run weir test --update` || p.Diff != "- up{mark=\"x\"} 1\n+ up{mark=\"x\"} 2\n" || p.Line != 2 {
		t.Errorf("got %+v", p)
	}
	if diff := cmp.Diff([]string{"b 2"}, r.Files[0].Snapshots.Obsolete); diff != "" {
		t.Errorf("obsolete (-want +got):\n%s", diff)
	}
	if content(t, snapLua) != before {
		t.Error("the file was written without --update")
	}
	r = run(t, writing(true))
	if got := r.Files[0].Snapshots.String(); !r.OK() || got != "1 snapshot updated, 1 snapshot removed" {
		t.Errorf("got %v, %q", ends(r), got)
	}
	if got := content(t, snapLua); !strings.Contains(got, "up{mark=\"x\"} 2") || strings.Contains(got, "b 2") {
		t.Errorf("got\n%s", got)
	}

	// Tests that fail before their snapshot, or do not run, keep it.
	test("it('a', function() assert.equals(1, 2) assert.snapshot(1) end)\npending('b', function() assert.snapshot(1) end)\n")
	if got := run(t, writing(true)).Files[0].Snapshots.String(); got != "" {
		t.Errorf("got %q", got)
	}
	// The file is removed with its last snapshot.
	test("it('a', function() end)\nit('b', function() end)\n")
	run(t, writing(true))
	if _, err := os.Stat(snapLua); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file exists: %v", err)
	}
	// A file without its test file is an orphan.
	test("it('a', function() assert.snapshot(1) end)\n")
	run(t, writing(false))
	if err := os.Rename(snapLua, snapTS); err != nil {
		t.Fatal(err)
	}
	if got := run(t, writing(false)).Orphans; len(got) != 1 || got[0] != snapTS {
		t.Errorf("got orphans %q", got)
	}
	run(t, writing(true))
	if _, err := os.Stat(snapTS); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the orphan exists: %v", err)
	}
}

// TestSnapshotsThatFail covers values that cannot be stored, and broken files.
func TestSnapshotsThatFail(t *testing.T) {
	f := func(test, snap, want string, o scripttest.Options) {
		t.Helper()
		name := "scripts/a/mark_test.lua"
		if strings.Contains(test, "=>") {
			name = "scripts/a/mark.test.ts"
		}
		text := marked + "-- " + name + " --\n" + test + "\n"
		if snap != "" {
			text += "-- " + filepath.Dir(name) + "/__snapshots__/" + filepath.Base(name) + ".snap --\n" + snap
		}
		write(t, archive(text))
		r := run(t, o)
		p := r.Files[0].Problem
		if p == nil {
			p = r.Files[0].Tests[0].Problem
		}
		if p == nil || !strings.Contains(p.String(), want) {
			t.Errorf("%s: got %v, want %q", test, p, want)
		}
	}
	const one = `it("a", function() assert.snapshot(1) end)`
	f(one, "", `there is no snapshot "a 1" in `+snapLua+`; run "weir test" without --ci to write it`, options())
	f(one, "", `there is no snapshot "a 1"`, func() scripttest.Options { o := options(); o.Chaos = true; return o }())
	f(`assert.snapshot(1) it("a", function() end)`, "", "cannot take a snapshot outside of a test", writing(false))
	f(`it("a", function() assert.is_not_snapshot(1) end)`, "", "cannot negate assert.snapshot", writing(false))
	f(`it("a", () => { expect(1).not.toMatchSnapshot(); });`, "", "cannot negate toMatchSnapshot", writing(false))
	f(`it("a", () => { expect(1).toMatchSnapshot({ a: 1 } as any); });`, "", "as the name of a snapshot", writing(false))
	f(`it("a", () => { let x: any = 1; for (let i = 0; i < 200; i++) x = [x]; expect(x).toMatchSnapshot(); });`, "", "cannot show a value that nests deeper than 100", writing(false))
	f(`it("a", function() assert.snapshot(("x"):rep(2^20)) end)`, "", "cannot store a snapshot of 1048578 bytes: the maximum is 1048576", writing(false))

	const restore = `; restore the file from version control, or delete it and run "weir test"`
	f(one, "=== a 1\n  1\n<<<<<<< HEAD\n", snapLua+`:3: cannot read the snapshot "a 1": a line must begin with two spaces or with "=== "`+restore, writing(true))
	f(one, "  1\n", snapLua+`:1: cannot read the snapshots: the first one must begin with "=== "`+restore, writing(true))
	f(one, "=== a 1\n  1\n\n=== a 1\n  2\n", snapLua+`:4: the snapshot "a 1" exists twice`+restore, writing(true))
	f(one, "=== \"a 1\n", snapLua+`:1: cannot read the name of a snapshot`+restore, writing(true))
	f(one, strings.Repeat("#", 17<<20), "cannot read the snapshots "+snapLua, writing(true))

	disk := writing(false)
	disk.Write = func(string, string) error { return errors.New("disk full") }
	f(one, "", "cannot write the snapshots "+snapLua+": disk full", disk)
}
