package js_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/hostiletest"
	"github.com/weir-run/weir/scripting/js"
)

// hidden are texts behind which a reader that takes lines for what ends at \n, or
// a comment for what begins a line with //, does not see what follows.
var hidden = []string{
	"", "// x\r", "// x\u2028", "// x\u2029", "\ufeff// x\r", "/*\n// */ ", "x = \"\\\n// \" + ", "x = '\\\r\n// ' + ", "x = `\n// ` + ", "x = `${\n// }\n1}` + ", "<!-- x\r", "#!x\r", "// x\r\n", "/// x\v\r",
	"x = /[/]\\/(/ + ", "x = 1 /\n// x\r", "\x00", "/*\r// */ ", "x = <a>\n//</a>\n", "\r//\r",
}

// nests are what parsers and compilers call themselves for.
var nests = [][3]string{
	{"(", "1", ")"}, {"[", "1", "]"}, {"{", "", "}"}, {"({a:", "1", "})"}, {"f(", "1", ")"}, {"!", "1", ""}, {"- ", "1", ""}, {"typeof ", "1", ""}, {"void\r", "1", ""}, {"new ", "A", ""}, {"a?b:", "1", ""}, {"a?", "1", ":b"}, {"a=", "1", ""}, {"a=>", "1", ""}, {"()=>{", "", "}"},
	{"1**", "1", ""}, {"1+", "1", ""}, {"a&&", "1", ""}, {"a??", "1", ""}, {"a.", "a", ""}, {"a?.", "a", ""}, {"if(a)", ";", ""}, {"if(a);else ", ";", ""}, {"while(a)", ";", ""}, {"for(;;)", ";", ""}, {"a:", ";", ""}, {"`${", "1", "}`"}, {"a`", "", "`"}, {"do\r", ";", "while(a)"}, {"try{", "", "}catch{}"},
	{"class A extends ", "B", "{}"}, {"class A{a=", "1", "}"}, {"function f(){", "", "}"}, {"async()=>", "1", ""}, {"[...", "a", "]"}, {"{a:", "b", "}"}, {"await ", "1", ""}, {"switch(a){case 1:", "", "}"}, {"a[", "0", "]"}, {"1,", "1", ""}, {"a=1\r", "", ""}, {"let a;", "", ""}, {"let a\u2028", "", ""},
	{"type A = B<", "C", ">"}, {"type A = (", "C", ")"}, {"type A = [", "C", "]"}, {"type A = C extends D ? ", "E", ": F"}, {"type A = keyof ", "B", ""}, {"type A=B|", "B", ""}, {"a<", "b", ">"}, {"<T>", "a", ""}, {"a as ", "b", ""}, {"a!", "", ""}, {"@a ", "class B{}", ""}, {"namespace A{", "", "}"}, {"declare module A{", "", "}"}, {"enum A{a=", "1", "}"}, {"interface A{a:", "b", "}"}, {"(a:", "b", ")=>1"},
	{"/(", "a", ")/"}, {"/", "", ""}, {"/a/", "", ""}, {"\"", "", ""}, {"\\", "", ""}, {"/*", "", "*/"}, {"//", "", ""}, {"\n", "", ""}, {"import a from \"weir\"\n", "", ""}, {"export{", "a", "}"}, {"\u00e9", "", ""}, {"\ud7ff", "", ""}, {"0", "", ""}, {"1n+", "1n", ""}, {"x", "", ""}, {"a=b,", "c", ""}, {"{let a=", "1", "}"}, {"(function(){var a;", "", "})()"}, {"for(let a of [1]){", "", "}"}, {"({get a(){return ", "1", "}})"}, {"[a=", "1", "]=b"}, {"({a:", "b", "}=c)"}, {"let {a:", "b", "}=c"}, {"yield ", "1", ""},
}

// FuzzSource compiles texts that nest or repeat, whatever hides it: an error or
// a program, from a process that lives and stays small.
func FuzzSource(f *testing.F) {
	child := hostiletest.NewChild(f, "TestSourceInChild")
	seeds := append(hostiletest.Sources(hidden, nests[:3]), hostiletest.Sources(hidden[:2], nests[3:])...)
	for _, s := range seeds {
		if strings.HasPrefix(s.Unit, "let a") {
			s.N = 2000 // what esbuild says of each of them takes it through all of the text
		}
		f.Add(s.Before, s.Unit, s.Middle, s.Close, s.After, s.N)
	}
	f.Fuzz(func(t *testing.T, before, unit, middle, end, after string, n int) {
		if len(before)+len(unit)+len(middle)+len(end)+len(after) > 4096 {
			return
		}
		child.Run(t, hostiletest.Source{Before: before, Unit: unit, Middle: middle, Close: end, After: after, N: n}.Encode())
	})
}

// TestHiddenNesting: nothing that stands before brackets hides them.
func TestHiddenNesting(t *testing.T) {
	for _, before := range hidden {
		// Few enough for parsers that are not warned.
		text := before + strings.Repeat("[", 3000) + "\n"
		_, err := js.New().Compile(scripting.File{Name: "x.ts", Text: text}, scripting.Env{})
		if err == nil || !strings.Contains(err.Error(), "nests deeper than 1000 brackets") {
			t.Errorf("%q: got %.200v", before, err)
		}
	}
}

func TestSourceInChild(t *testing.T) {
	hostiletest.Serve(t, func(testing.TB) func([]byte) error {
		return func(data []byte) error {
			s, err := hostiletest.DecodeSource(data)
			if err != nil {
				return err
			}
			f := scripting.File{Name: "x.ts", Text: s.Text(scripting.MaxFileSize)}
			_, err = js.New().Compile(f, scripting.Env{Modules: modules})
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
