package lua_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/hostiletest"
	"github.com/weir-run/weir/scripting/lua"
)

// hidden are texts behind which a reader that takes lines for what ends at \n, or
// a bracket for one that it is not, does not see what follows.
var hidden = []string{
	"", "-- x\r", "--[x\r", "--[=x\r", "--[==[ ]=] ]==]", "--[[\r]]", "x = [[\r]] ..", "x = [==[]]]==] ..", "x = '\\\r' ..", "x = '\\\n' ..", "x = \"\\\r\n\" ..", "x = '\\z\r' ..", "x = '\\065' ..", "\ufeff-- x\r", "#!x\r", "-- x\n\r", "x = a[ [[\r]] ] ..", "--\r--[[\r", "\x00", "-- x\v\r", "x = '\\\\' ..", "--[[]]--\r",
}

// nests are what parsers and compilers call themselves for.
var nests = [][3]string{
	{"x = (", "1", ")"}, {"(", "1", ")"}, {"{", "1", "}"}, {"x[", "1", "]"}, {"f(", "1", ")"}, {"do ", "", " end"}, {"not ", "1", ""}, {"- ", "1", ""}, {"#", "x", ""}, {"1^", "1", ""}, {"a..", "a", ""}, {"a and ", "a", ""}, {"a or ", "a", ""}, {"1+", "1", ""}, {"a==", "a", ""}, {"a.", "a", ""}, {"a:b()", "", ""}, {"f\"\"", "", ""}, {"\"\"", "", ""}, {"{}", "", ""}, {"()", "", ""}, {"[1]", "", ""},
	{"if a then ", "", " end"}, {"if a then elseif ", "a then", " end"}, {"elseif a then ", "", ""}, {"while a do ", "", " end"}, {"for i = 1, 2 do ", "", " end"}, {"repeat ", "", " until a"}, {"function f() ", "", " end"}, {"local function f() ", "", " end"}, {"f(function() ", "", " end)"}, {"return function() ", "", " end"}, {"x = {a = ", "1", "}"}, {"a, ", "a", " = 1"}, {"1, ", "1", ""}, {"local a = 1 ", "", ""}, {"local a ", "", ""}, {"a = 1 ", "", ""}, {"a = a ", "", ""}, {"goto a ", "::a::", ""}, {"::a", "", "::"}, {";", "", ""}, {"f() ", "", ""}, {"f()\r", "", ""}, {"-- x\r", "", ""}, {"--[[", "", "]]"}, {"[[", "", "]]"}, {"[=", "[", "]=]"}, {"'", "", ""}, {"\\", "", ""}, {"\n", "", ""}, {"x", "", ""}, {"0", "", ""}, {"0x", "", ""}, {".", "", ""}, {"a.b = ", "1 ", ""}, {"local x = require 'a' ", "", ""}, {"return ", "1", ""}, {"x = x .. 'a' ", "", ""}, {"for a in b do for c in d do ", "", " end end"}, {"t[#t+1] = 1 ", "", ""},
}

// FuzzSource compiles texts that nest or repeat, whatever hides it: an error or
// a program, from a process that lives and stays small.
func FuzzSource(f *testing.F) {
	child := hostiletest.NewChild(f, "TestSourceInChild")
	seeds := append(hostiletest.Sources(hidden, nests[:3]), hostiletest.Sources([]string{"", "x = ", "-- x\rreturn "}, nests[3:])...)
	for _, s := range seeds {
		f.Add(s.Before, s.Unit, s.Middle, s.Close, s.After, s.N)
	}
	f.Fuzz(func(t *testing.T, before, unit, middle, end, after string, n int) {
		if len(before)+len(unit)+len(middle)+len(end)+len(after) > 4096 {
			return
		}
		child.Run(t, hostiletest.Source{Before: before, Unit: unit, Middle: middle, Close: end, After: after, N: n}.Encode())
	})
}

// TestHiddenNesting: nothing that stands before brackets hides them, and what the
// parser takes for a comment or a string is not counted.
func TestHiddenNesting(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := lua.New().Compile(scripting.File{Name: "x.lua", Text: text}, scripting.Env{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %.200v", text, err)
		}
	}
	const deep, flat = "nests deeper than 200 levels", "x.lua: "
	brackets := strings.Repeat("(", 1000)
	for _, before := range []string{
		"", "-- x\r", "--[x\r", "--[==[ ]=] ]==]", "--[[\r]]", "x = '\\\r' ..", "x = '\\\n' ..", "x = \"\\\r\n\" ..", "x = '\\z' ..", "\ufeff-- x\r", "-- x\n\r", "--\r--[[\r]]", "-- x\v\r", "x = '\\\\' ..", "--[[]]--\r", "x = '\\'' ..",
	} {
		f(before+"x = "+brackets, deep)
	}
	f("-- "+brackets, flat)
	f("--[[\r"+brackets+"]]", flat)
	f("local x = '"+brackets+"'", flat)
	f("local x = [==["+brackets+"]]]==]", flat)
}

func TestSourceInChild(t *testing.T) {
	hostiletest.Serve(t, func(testing.TB) func([]byte) error {
		return func(data []byte) error {
			s, err := hostiletest.DecodeSource(data)
			if err != nil {
				return err
			}
			f := scripting.File{Name: "x.lua", Text: s.Text(scripting.MaxFileSize)}
			_, err = lua.New().Compile(f, scripting.Env{Modules: modules, Require: func(string) (scripting.File, error) { return scripting.File{}, errors.New("none") }})
			if _, ok := errors.AsType[*scripting.Error](err); err != nil && !ok {
				return errors.New("got an error that is no *scripting.Error: " + err.Error())
			}
			if err != nil && strings.Contains(err.Error(), "BUG") {
				return err
			}
			return nil
		}
	})
}
