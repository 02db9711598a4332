package scripting_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

func TestErrorText(t *testing.T) {
	f := scripting.File{Name: "scripts/a/b.lua", Text: "\n\t  local x = = 1 \n"}
	e := f.Error(2, "each", errors.New("no"))
	same(t, e.Error(), "scripts/a/b.lua:2: in each: no\n  2 | local x = = 1")
	e.Col = 14
	e.Record = "up 1"
	e.Hint = "try less"
	e.Trace = []scripting.Frame{{File: "lib/x.lua", Line: 3}, {File: "lib/x.lua", Line: 3, Func: "f"}, {File: "scripts/a/b.lua", Line: 9}}
	same(t, e.Error(), `scripts/a/b.lua:2:14: in each: no
  2 | local x = = 1
    |           ^
  record: up 1
  stack: lib/x.lua:3 < scripts/a/b.lua:9
  hint: try less`)
	e.Col = 99 // beyond the line, as of a cut one
	if strings.Contains(e.Error(), "^") {
		t.Errorf("there is a caret in %s", e)
	}
	got, err := json.Marshal(&scripting.Error{
		Node: "a.b.x", Script: "a.b", File: "f.lua", Line: 2, Col: 3, Source: "x", Hook: "each", Record: "up 1", Hint: "h", Err: errors.New("no"),
		Trace: []scripting.Frame{{File: "f.lua", Line: 2, Func: "main chunk"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, string(got), `{"node":"a.b.x","script":"a.b","file":"f.lua","line":2,"col":3,"source":"x","hook":"each","message":"no","record":"up 1",`+
		`"stack":[{"file":"f.lua","line":2,"func":"main chunk"}],"hint":"h","text":"f.lua:2:3: in each: no\n  2 | x\n  record: up 1\n  hint: h"}`)
}

// The log has one line for each line of the script that fails, and in the end
// how many errors were not worth one. The page has the last error.
func TestErrorsNotLogged(t *testing.T) {
	n := newNode(t)
	n.save(`return weir.transform { metrics = function(batch) batch:each(function(m) if m.value > 1 then error("large") end end) end }`, "")
	n.send(text(t, 1, "a 2\nb 3\nc 4\n"))
	info := func() string {
		t.Helper()
		b, err := json.Marshal(n.c.(component.Debugger).DebugInfo())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := info(); !strings.Contains(got, `"message":"large","record":"c 4 1000"`) || !strings.Contains(got, `"node":"a.b.default"`) {
		t.Errorf("got %s", got)
	}
	n.send(text(t, 1, "a 1\n"))
	if got := n.Logs(); strings.Count(got, `msg="script failed"`) != 1 || !strings.Contains(got, `msg="script works again" component_id=a.b.default errors_not_logged=2`) {
		t.Errorf("got log\n%s", got)
	}
	if got := info(); strings.Contains(got, "large") {
		t.Errorf("got %s", got)
	}
}
