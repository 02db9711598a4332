package lua

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/weir-run/weir/scripting"
)

// suites copies gopher-lua's own tests and those of Lua 5.1 that it passes out
// of the module's source.
func suites(t *testing.T) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/gopher-lua").Output()
	if err != nil {
		t.Fatalf("cannot find the source of gopher-lua: %v", err)
	}
	src, dir := os.DirFS(strings.TrimSpace(string(out))), t.TempDir()
	for _, suite := range []string{"_glua-tests", "_lua5.1-tests"} {
		sub, err := fs.Sub(src, suite)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(dir, suite), sub); err != nil {
			t.Fatalf("cannot copy the tests of gopher-lua: %v", err)
		}
	}
	return dir
}

// A conformant file is one that gopher-lua passes as it is.
type conformant struct {
	name string
	// stops is the line at which it first uses what the sandbox removes, and
	// missing what that is, as the manual calls it; 0 when it passes.
	stops   int
	missing string
	// cut are the lines that are left out when everything that is removed is
	// put back: first and last, and why. what is about nothing else has "all".
	cut []cut
}

type cut struct {
	from, to int
	why      string
}

// all is for a file that is about what the sandbox removes, from the first line
// to the last.
func all(why string) []cut { return []cut{{1, 1 << 20, why}} }

// conformants are all the files of the two suites that gopher-lua passes. It
// passes neither all, db, errors, gc, main and nextvar of Lua 5.1, nor does it
// come to the end of big and verybig.
var conformants = []conformant{
	{name: "_glua-tests/base", stops: 4, missing: "dofile"},
	{name: "_glua-tests/coroutine"},
	{name: "_glua-tests/db", stops: 8, missing: "debug"},
	{name: "_glua-tests/goto", stops: 2, missing: "loadstring"},
	{name: "_glua-tests/issues", stops: 78, missing: "debug", cut: []cut{
		{68, 115, "a traceback shows pcall and xpcall, which are functions of ours"},
	}},
	{name: "_glua-tests/math"},
	{name: "_glua-tests/os", stops: 2, missing: "os", cut: all("it runs commands")},
	{name: "_glua-tests/strings"},
	{name: "_glua-tests/table"},
	{name: "_glua-tests/vm", stops: 84, missing: "loadstring"},
	{name: "_lua5.1-tests/api"},
	{name: "_lua5.1-tests/attrib", stops: 62, missing: "require takes a constant string", cut: all("it is about package and files")},
	{name: "_lua5.1-tests/calls", stops: 73, missing: "loadstring"},
	{name: "_lua5.1-tests/checktable"},
	{name: "_lua5.1-tests/closure", stops: 167, missing: "setfenv"},
	{name: "_lua5.1-tests/code"},
	{name: "_lua5.1-tests/constructs", stops: 153, missing: "loadstring"},
	{name: "_lua5.1-tests/events", stops: 5, missing: "setfenv"},
	{name: "_lua5.1-tests/files", stops: 1, missing: "os", cut: all("it is about files")},
	{name: "_lua5.1-tests/literals", stops: 3, missing: "loadstring"},
	{name: "_lua5.1-tests/locals", stops: 24, missing: "loadstring"},
	{name: "_lua5.1-tests/math", stops: 5, missing: "may not assign to globals", cut: []cut{
		{164, 165, "the module checktable assigns to a global"},
	}},
	{name: "_lua5.1-tests/pm", stops: 161, missing: "setfenv"},
	{name: "_lua5.1-tests/sort", stops: 22, missing: "math.random"},
	{name: "_lua5.1-tests/strings", stops: 147, missing: "os"},
	{name: "_lua5.1-tests/vararg", stops: 101, missing: "loadstring"},
}

// TestConformance runs what gopher-lua passes of its own tests and of those of
// Lua 5.1. A file passes here too, or stops where it uses what the sandbox
// removes, which the manual must say; with that put back it passes, but for
// lines that are about it.
func TestConformance(t *testing.T) {
	if testing.Short() || RaceDetector {
		t.Skip("the suites take long, and run in one goroutine")
	}
	New()
	dir := suites(t)
	manual := Manual()
	for _, c := range conformants {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(filepath.Join(dir, filepath.Dir(c.name)))
			base := filepath.Base(c.name) + ".lua"
			raw, err := os.ReadFile(base)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			if line := stopsAt(runSuite(base, text, false)); line != c.stops {
				t.Errorf("it stops at line %d, want %d: %v", line, c.stops, runSuite(base, text, false))
			}
			if !strings.Contains(manual, c.missing) {
				t.Errorf("the manual does not say that %s is missing", c.missing)
			}
			lines := strings.SplitAfter(text, "\n")
			for _, cut := range c.cut {
				for i := cut.from; i <= min(cut.to, len(lines)); i++ {
					lines[i-1] = "\n"
				}
			}
			if err := runSuite(base, strings.Join(lines, ""), true); err != nil {
				t.Errorf("with everything put back: %v", err)
			}
			if len(c.cut) > 0 && c.cut[0].to < len(lines) && runSuite(base, text, true) == nil {
				t.Error("no line need be cut")
			}
		})
	}
}

// TestConformanceOfGopherLua shows that the list holds what gopher-lua passes.
func TestConformanceOfGopherLua(t *testing.T) {
	if testing.Short() || RaceDetector {
		t.Skip("the suites take long, and run in one goroutine")
	}
	New()
	dir := suites(t)
	for _, c := range conformants {
		if c.name == "_glua-tests/os" || c.name == "_lua5.1-tests/files" {
			continue // they run commands
		}
		t.Chdir(filepath.Join(dir, filepath.Dir(c.name)))
		L := lua.NewState(lua.Options{RegistrySize: 20 << 10, CallStackSize: 1024})
		L.SetGlobal("print", L.NewFunction(func(*lua.LState) int { return 0 }))
		if err := L.DoFile(filepath.Base(c.name) + ".lua"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		L.Close()
	}
}

// stopsAt is the line of an error, 0 for none.
func stopsAt(err error) int {
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*scripting.Error](err)
	if !ok {
		return -1
	}
	return e.Line
}

// runSuite runs a file of a suite as weir eval does; whole puts back what the
// sandbox removes.
func runSuite(name, text string, whole bool) error {
	env := scripting.Env{Require: func(name string) (scripting.File, error) {
		text, err := os.ReadFile(name + ".lua")
		return scripting.File{Name: name + ".lua", Text: string(text)}, err
	}}
	p, err := read(scripting.File{Name: name, Text: shebang(text)}, env, plainFile)
	if err != nil {
		return err
	}
	p.def = &scripting.Definition{}
	v := p.newVM(scripting.Host{Log: func(slog.Level, string, string, []any) {}})
	defer v.L.Close()
	v.openPlain(nil)
	if whole {
		putBack(v)
	}
	v.budget.start(2*time.Minute, 0) // the machine may be slow
	return v.runFunction(v.L.NewFunctionFromProto(p.main.proto), 0)
}

// putBack gives a VM what the sandbox removes.
func putBack(v *vm) {
	bare := lua.NewState()
	defer bare.Close()
	for _, n := range []string{"setfenv", "getfenv", "collectgarbage", "newproxy", "dofile", "loadfile", "module"} {
		v.library.env.RawSetString(n, v.L.NewFunction(bare.GetGlobal(n).(*lua.LFunction).GFunction))
	}
	for _, open := range []lua.LGFunction{lua.OpenOs, lua.OpenIo, lua.OpenDebug} {
		v.L.Push(v.L.NewFunction(open))
		v.L.Call(0, 0)
	}
	for _, n := range []string{"random", "randomseed"} {
		f := bare.GetField(bare.GetGlobal("math"), n).(*lua.LFunction)
		v.readOnly.behind[v.library.env.RawGetString("math").(*lua.LTable)].RawSetString(n, v.L.NewFunction(f.GFunction))
	}
	load := func(L *lua.LState, text, name string) int {
		if _, err := parse.Parse(strings.NewReader(text), name); err != nil {
			L.Push(lua.LNil)
			L.Push(lua.LString(err.Error()))
			return 2
		}
		c, err := compile(scripting.File{Name: name, Text: text}, plainFile, nil)
		if err != nil {
			L.Push(lua.LNil)
			L.Push(lua.LString(err.Error()))
			return 2
		}
		v.prog.files[name] = c
		L.Push(L.NewFunctionFromProto(c.proto))
		return 1
	}
	v.library.env.RawSetString("loadstring", v.L.NewFunction(func(L *lua.LState) int {
		return load(L, L.CheckString(1), L.OptString(2, "<string>"))
	}))
	v.library.env.RawSetString("load", v.L.NewFunction(func(L *lua.LState) int {
		fn := L.CheckFunction(1)
		var b strings.Builder
		for {
			L.Push(fn)
			L.Call(0, 1)
			s := L.Get(-1)
			L.Pop(1)
			if s == lua.LNil || s == lua.LString("") {
				break
			}
			if _, ok := s.(lua.LString); !ok {
				L.Push(lua.LNil)
				L.Push(lua.LString("reader function must return a string"))
				return 2
			}
			b.WriteString(s.String())
		}
		return load(L, b.String(), L.OptString(2, "<string>"))
	}))
}
