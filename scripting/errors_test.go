package scripting_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

func TestErrorText(t *testing.T) {
	f := scripting.File{Name: "scripts/a/b.lua", Text: "\n\t  local x = = 1 \n"}
	e := f.Error(2, "each", errors.New("no"))
	registrytest.Same(t, e.Error(), "scripts/a/b.lua:2: in each: no\n  2 | local x = = 1")
	e.Col = 14
	e.Record = "up 1"
	e.Hint = "try less"
	e.Trace = []scripting.Frame{{File: "lib/x.lua", Line: 3}, {File: "lib/x.lua", Line: 3, Func: "f"}, {File: "scripts/a/b.lua", Line: 9}}
	registrytest.Same(t, e.Error(), `scripts/a/b.lua:2:14: in each: no
  2 | local x = = 1
    |           ^
  record: up 1
  stack: lib/x.lua:3 < scripts/a/b.lua:9
  hint: try less`)
	e.Col = 99 // beyond the end of the line, as in a shortened one
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
	registrytest.Same(t, string(got), `{"node":"a.b.x","script":"a.b","file":"f.lua","line":2,"col":3,"source":"x","hook":"each","message":"no","record":"up 1",`+
		`"stack":[{"file":"f.lua","line":2,"func":"main chunk"}],"hint":"h","text":"f.lua:2:3: in each: no\n  2 | x\n  record: up 1\n  hint: h"}`)
}
