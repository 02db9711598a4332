package js

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/dop251/goja"
)

// TestParts takes parts of long texts in every way that there is: no part may share
// the memory of the text.
func TestParts(t *testing.T) {
	t.Cleanup(stopPatternClock)
	const long = 100_000
	ascii := func() string { return "x abc=12345 " + strings.Repeat("y", long) }
	for kind, of := range map[string]func(text string) goja.Value{
		"as bytes":              asciiValue,
		"from Go, not yet read": func(text string) goja.Value { return engine.ToValue(text) },
	} {
		t.Run(kind, func(t *testing.T) {
			f := func(expr string) {
				t.Helper()
				text := ascii()
				checkParts(t, expr, text, of(text))
			}
			f(`line.at(2)`)
			f(`line.charAt(2)`)
			f(`line.slice(2, 5)`)
			f(`line.slice(2, 5) + ""`)
			f("`${line.slice(2, 5)}`")
			f(`line.substr(2, 3)`)
			f(`line.substring(2, 5)`)
			f(`new String(line).slice(2, 5)`)
			f(`String.prototype.slice.call({ toString() { return line } }, 2, 5)`)
			f(`line.slice(0, 60000).slice(0, 40000)`)
			f(`(() => { let s = line; while (s.length > 10) s = s.slice(0, s.length * 0.7); return s })()`)
			f(`(() => { let s = line, t = line + "z"; for (let i = 0; i < 10; i++) { s = s.slice(0, s.length * 0.7); t = t.slice(0, t.length * 0.7) } return s })()`)
			f(`line.split("=")[0]`)
			f(`line.split(" ", 2)`)
			f(`line.split(/ /)`)
			f(`line.split(/( )(abc)/)`)
			f(`line.split(/ (?=\d)|(?<=x) /)`)
			f(`/\d+/.exec(line)[0]`)
			f(`/(\w+)=(\d+)/.exec(line).slice(1)`)
			f(`/(?<name>\w+)=(?<n>\d+)/.exec(line).groups`)
			f(`/(?<==)\d+/.exec(line)[0]`)
			f(`/(?<==)(\d)/y.exec(line) ?? (() => { const r = /\d+/g; r.lastIndex = 3; return r.exec(line)[0] })()`)
			f(`line.match(/(\w+)=(\d+)/).slice(1)`)
			f(`line.match(/\d/g)`)
			f(`line.match(/\w\w\d?=/g)`)
			f(`line.match(/(?<==)\d+/g)`)
			f(`[...line.matchAll(/(?<name>[a-c]+)=(\d+)/g)].map((m) => [m[0], m[1], m.groups])`)
			f(`kept((keep) => line.replace("abc", keep))`)
			f(`kept((keep) => line.replaceAll("abc", keep))`)
			f(`kept((keep) => line.replace(/(\w+)=(?<n>\d+)/, (all, name, n, at, whole, groups) => keep([all, name, n, groups])))`)
			f(`kept((keep) => line.replaceAll(/(\d)(\d)/g, (all, a, b) => keep([all, a, b])))`)
			f(`kept((keep) => line.replace(/(?<==)(\d)(\d)/g, (all, a, b) => keep([all, a, b])))`)
			f(`RegExp.prototype[Symbol.match].call(/\w+=/, line)[0]`)
			f(`[...line].slice(0, 3)`)
			f(`(([a, b]) => [a, b])(line)`)
			f(`JSON.parse('{"a":"bcd","e":"' + line + '"}').a`)
			// These call no function of weir: the characters are replaced by the next walk.
			f(`walked(line[2])`)
			f(`((all) => [all[0], all[1], ...all[2], ...all[3]])(walked([line[2], { c: line[3] }, new Map([[line[4], line[5]]]), new Set(line[6])]))`)
			f(`walked((() => { const c = line[2]; return () => c })())()`)
			f(`walked(Object.values(line.slice(0, 60000)).slice(0, 9))`)
			f(`walked(Array.prototype.slice.call(line, 0, 3))`)

			text := strings.Repeat(" ", long) + "abc" + strings.Repeat("\t", long)
			for _, name := range []string{"trim()", "trimStart().trimEnd()", "trimLeft().trimRight()", "trimEnd().trimStart()", "trimRight().trimLeft()"} {
				checkParts(t, "line."+name, text, of(text))
			}
		})
	}
	// goja trims a copy of these.
	text := strings.Repeat("\u2003", long) + "abc" + strings.Repeat("\u2003", long)
	checkParts(t, `line.trim()`, text, engine.ToValue(text))
}

// checkParts looks at what an expression makes of line, which is a text.
func checkParts(t *testing.T, expr, text string, line goja.Value) {
	t.Helper()
	rt := goja.New()
	_ = rt.Set("line", line)
	var s *sandbox
	_ = rt.Set("walk", func(goja.FunctionCall) goja.Value { s.held(1 << 30); return nil })
	b := &budget{rt: rt}
	b.start(loadTime, 0)
	s = newSandbox(rt, b)
	b.held = s.held
	got, err := rt.RunString(`const kept = (fn) => { const all = []; fn((x) => { all.push(x); return "" }); return all }, walked = (x) => { const all = [x]; walk(); return all[0] }; ` + expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	n := 0
	var look func(x goja.Value)
	look = func(x goja.Value) {
		if o := object(x); o != nil {
			for _, k := range o.Keys() {
				if k != "input" {
					look(o.Get(k))
				}
			}
			return
		}
		part, ok := asciiText(x)
		if !ok {
			return
		}
		n++
		from, at := uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(unsafe.Pointer(unsafe.StringData(part)))
		if at >= from && at < from+uintptr(len(text)) && 2*len(part) < len(text) {
			t.Errorf("%s: %.20q is a part of the text", expr, part)
		}
	}
	look(got)
	if n == 0 {
		t.Errorf("%s: there is no part in %v", expr, fmt.Sprint(got))
	}
}

// TestWalkersShareTemplates is for the race detector: VMs share the strings of a
// template literal, which a walker must not write to.
func TestWalkersShareTemplates(t *testing.T) {
	prog := goja.MustCompile("", "const tag = (x) => x, kept = [tag`a${1}b`, tag`c`]; walk(); kept[0][1] + kept[0].raw[0] + kept[1][0]", true)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			rt := goja.New()
			s := &sandbox{rt: rt}
			_ = rt.Set("walk", func(goja.FunctionCall) goja.Value { s.held(1 << 30); return nil })
			got, err := rt.RunProgram(prog)
			if err != nil || got.String() != "bac" {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	all.Wait()
}
