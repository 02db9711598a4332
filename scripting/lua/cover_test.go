package lua

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
)

// ran runs a file with and without counters and returns what was counted, by
// line, with the arms of its ifs in brackets.
func ran(t *testing.T, text string) string {
	t.Helper()
	f := scripting.File{Name: "x.lua", Path: "/x.lua", Text: "local weir = require 'weir'\n" + text + "\nreturn weir.transform { metrics = function() end }\n"}
	run := func(env scripting.Env) (instructions int64) {
		p, err := read(f, env, componentFile)
		if err != nil {
			t.Fatal(err)
		}
		v := p.newVM(scripting.Host{})
		if err := v.loadFile(); err != nil {
			t.Fatal(err)
		}
		return v.budget.instr.ran()
	}
	c := &scripting.Coverage{}
	counted, plain := run(scripting.Env{Probe: &scripting.Probe{Coverage: c}}), run(scripting.Env{})
	// A jump around nothing, which the tree gets where a loop begins, may be
	// less; never more than a few.
	if d := counted - plain; d < -10 || d > 10 {
		t.Errorf("%d instructions with counters, %d without", counted, plain)
	}
	var out []string
	for _, f := range c.Files() {
		for _, s := range f.Statements[1 : len(f.Statements)-1] { // without require and return
			out = append(out, fmt.Sprintf("%d:%d", s.Line-1, f.Hits(s.Counter)))
		}
		for _, b := range f.Branches {
			arms := make([]string, len(b.Arms))
			for i, a := range b.Arms {
				arms[i] = fmt.Sprint(f.Hits(a))
			}
			out = append(out, fmt.Sprintf("%d[%s]", b.Line-1, strings.Join(arms, " ")))
		}
	}
	return strings.Join(out, " ")
}

func TestCover(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if diff := cmp.Diff(want, ran(t, text)); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", text, diff)
		}
	}
	f("local a = 1\n\na = 2", "1:1 3:1")
	f("local function a()\nreturn 1\nend", "1:1 2:0")
	f("local t = { f = function() return 1 end }\nt.f() t.f()", "1:1 1:2 2:1 2:1")
	f("for i = 1, 3 do\nlocal _ = i\nend", "1:1 2:3")
	f("for k in pairs({1, 2}) do\nlocal _ = k\nend", "1:1 2:2")
	f("local i = 0\nwhile i < 2 do\ni = i + 1\nif i == 1 then break end\nend", "1:1 2:1 3:1 4:1 4:1 4[1]")
	f("local i = 0\nrepeat local j = i\ni = i + 1\nuntil j == 2", "1:1 2:1 2:3 3:3")
	f("for i = 1, 4 do\nif i == 1 then local _\nelseif i == 2 then\nelse local _ end\nend", "1:1 2:4 2:1 4:2 2[1 1]")
	f("do\nlocal x = (function() return 'a' end)() .. 'b' .. tostring(1)\nend", "2:1 2:1")
	f("local function g() for i = 1, 3 do\nif i == 2 then goto continue end\nlocal _\n::continue::\nend end g()", "1:1 1:1 2:3 2:1 3:2 5:1 2[1]")
	f("local co = coroutine.wrap(function()\nfor i = 1, 2 do\ncoroutine.yield(i)\nend\nend)\nco()\nco()", "1:1 2:1 3:2 6:1 7:1")
	f("pcall(function()\nerror('x')\nlocal _\nend)", "1:1 2:1 3:0")
}

// TestCoverEmbedded checks that scripts that ship with weir are not counted.
func TestCoverEmbedded(t *testing.T) {
	c := &scripting.Coverage{}
	f := scripting.File{Name: "x.lua", Text: "return 1"}
	if _, err := read(f, scripting.Env{Probe: &scripting.Probe{Coverage: c}}, componentFile); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Files()); n != 0 {
		t.Errorf("%d files are counted", n)
	}
}
