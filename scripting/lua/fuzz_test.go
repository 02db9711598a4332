package lua

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/pm"

	"github.com/weir-run/weir/scripting"
)

// FuzzPattern matches anything with anything: no panic, no match out of range,
// an end; and where gopher-lua's own matcher is right too, the same answer.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{
		"", "a", ".", "a*", "a+b", "a-b", "(a)(b)", "()", "%b()", "%f[%w]", "[^a-z]", "[]]", "[%]]", "^a$", "%1", "(a)%1",
		"%", "[", "[a", "(", ")", "%b", "%f", "a?b?c?", "[a-]", "[%a-z]", "((a))", "%z", "^", "$", "^*", "**",
	} {
		f.Add("aab(b)c", p, 0)
	}
	f.Fuzz(func(t *testing.T, src, pat string, init int) {
		if len(src) > 200 || len(pat) > 50 || init < 0 || init > len(src) {
			return
		}
		looks := 0
		m := &matcher{src: src, pat: pat, look: func() error {
			if looks++; looks > 50 {
				return errors.New("enough")
			}
			return nil
		}}
		s, e := m.find(init)
		if m.err == nil && s >= 0 && (s < init || e < s || e > len(src)) {
			t.Fatalf("match [%d,%d) of %q in %q from %d", s, e, pat, src, init)
		}
		for i := range m.captures() {
			if s >= 0 && m.err == nil {
				if _, pos, err := m.captured(i, s, e); err == nil && pos > len(src)+1 {
					t.Fatalf("position %d in %q", pos, src)
				}
			}
		}
	})
}

// TestPatternLikeGopherLua compares matches on plain patterns, on which
// gopher-lua's matcher follows the manual.
func TestPatternLikeGopherLua(t *testing.T) {
	sources := []string{"", "a", "abc", "aXbXc", "key = value", "2024-01-02T03:04:05", "(a(b)c)", "  x  ", "f(x)[y]", "\x00\xff", "aaa", "to GB82 WEST", "1 12 1.2 1.23.4"}
	patterns := []string{
		"a", "b", ".", ".*", ".-c", "a+", "a-", "a?b", "%w+", "%W", "%d+", "%s*", "^%s*(.-)%s*$", "(%w+) = (%w+)",
		"%d%d%d%d", "[abc]+", "[^abc]+", "[a-c]*", "%((.-)%)", "%b()", "%p", "%u", "%l+", "%x+", "%c", "x$", "^a", "()b()", "(a)(b?)", "%u%u%d%d", "[3-6]%d", "[^%s]+%.", "%d%.%d%d?%.", "%.", "-", "=+ ", "e?y", "[%w_]+", "(.)%1",
	}
	for _, src := range sources {
		for _, pat := range patterns {
			want, err := pm.Find(pat, []byte(src), 0, 1)
			m := &matcher{src: src, pat: pat, look: func() error { return nil }}
			s, e := m.find(0)
			if (err != nil) != (m.err != nil) {
				t.Errorf("%q in %q: got error %v, want %v", pat, src, m.err, err)
				continue
			}
			if len(want) == 0 {
				if s >= 0 {
					t.Errorf("%q in %q: got [%d,%d), want no match", pat, src, s, e)
				}
				continue
			}
			if s != want[0].Capture(0) || e != want[0].Capture(1) {
				t.Errorf("%q in %q: got [%d,%d), want [%d,%d)", pat, src, s, e, want[0].Capture(0), want[0].Capture(1))
			}
		}
	}
}

// FuzzCompile compiles anything: an error or a program, within the stack.
func FuzzCompile(f *testing.F) {
	for _, src := range []string{
		"", "return 1", "local a = [[x]] .. 'y' -- z", "--[==[ ]] ]==] x = 1", "for i = 1, 2 do end", "goto x ::x::",
		"local t = { a = 1, [2] = 'b'; 3 } t.x.y:z('w', ...)", "if a then elseif b then else end", "repeat until a .. b .. c",
		"local weir = require 'weir' return weir.transform { metrics = function(b) b:drop_where('x') end }", "\"\\", "'\\\n", "[=[",
		"local weir = require 'weir' local function h(b, c) for r in b:records() do r.x = c.args.y end end return weir.transform { metrics = h, every = { ['1s'] = function(c) c.emit { naem = 1 } end } }",
	} {
		f.Add(src)
	}
	l := New()
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 4096 {
			return
		}
		file := scripting.File{Name: "fuzz.lua", Text: src}
		c, err := compile(file, componentFile, nil)
		if err == nil && c.proto == nil {
			t.Fatal("neither a program nor an error")
		}
		l.Comment(src)
		if err == nil { // the linter looks at what can be compiled
			p := &program{files: map[string]*chunk{file.Name: c}, main: c, def: &scripting.Definition{}}
			for _, found := range p.Lint() {
				if found.Err.Line < 1 {
					t.Errorf("%v has no line", found.Err)
				}
			}
		}
	})
}

func TestOptionsOfGopherLua(t *testing.T) {
	New()
	if glua.MaxArrayIndex != maxArrayIndex {
		t.Errorf("MaxArrayIndex is %d, want %d", glua.MaxArrayIndex, maxArrayIndex)
	}
}

// TestPatternsLikeStock generates patterns and compares the results of string.find,
// gsub and gmatch with those of gopher-lua.
func TestPatternsLikeStock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var pattern func(depth int) string
	pattern = func(depth int) string {
		var b strings.Builder
		for range 1 + r.IntN(3) {
			if depth < 2 && r.IntN(4) == 0 {
				b.WriteString("(" + pattern(depth+1) + ")")
				continue
			}
			b.WriteString(pick("a", "b", ".", "%a", "%d", "%w", "%S", "[ab]", "[^a]", "[a-c1]", "%.", " "))
			b.WriteString(pick("", "", "", "*", "+", "-", "?"))
		}
		return b.String()
	}
	subject := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(pick("a", "b", "c", "1", " ", "."))
		}
		return b.String()
	}
	const chunk = `return function(s, p)
		local out = { s:find(p) }
		out[#out + 1] = s:gsub(p, "<%1>")
		for a, b in s:gmatch(p) do out[#out + 1] = a out[#out + 1] = b or "" end
		for i = 1, #out do out[i] = tostring(out[i]) end
		return table.concat(out, "|")
	end`
	New()
	p, err := read(scripting.File{Name: "p.lua", Text: chunk}, scripting.Env{}, plainFile)
	if err != nil {
		t.Fatal(err)
	}
	p.def = &scripting.Definition{}
	v := p.newVM(scripting.Host{})
	defer v.L.Close()
	stock := glua.NewState()
	defer stock.Close()
	fn, err := stock.LoadString(chunk)
	if err != nil {
		t.Fatal(err)
	}
	call := func(L *glua.LState, chunk *glua.LFunction) func(s, p string) string {
		L.Push(chunk)
		L.Call(0, 1)
		f := L.Get(-1)
		return func(s, p string) string {
			L.Push(f)
			L.Push(glua.LString(s))
			L.Push(glua.LString(p))
			if err := L.PCall(2, 1, nil); err != nil {
				return "error"
			}
			defer L.Pop(1)
			return L.Get(-1).String()
		}
	}
	ours, theirs := call(v.L, v.L.NewFunctionFromProto(p.main.proto)), call(stock, fn)
	bad, failed := 0, 0
	for range 20_000 {
		s, p := subject(), pattern(0)+pick("", "", "", "$")
		v.budget.start(time.Hour, 0)
		got, want := ours(s, p), theirs(s, p)
		if want == "error" {
			failed++
		}
		if got != want {
			t.Errorf("%q in %q: got %s, want %s", p, s, got, want)
			if bad++; bad > 10 {
				break
			}
		}
	}
	if failed > 100 {
		t.Errorf("%d patterns are errors: nothing is compared", failed)
	}
}
