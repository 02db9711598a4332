package js

import (
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
)

// BenchmarkVM is what a VM costs before the script's file has run in it.
func BenchmarkVM(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		rt := goja.New()
		newSandbox(rt, &budget{rt: rt})
	}
}

// BenchmarkNative is what a call of one of the language's own functions costs in
// a loop of the script.
func BenchmarkNative(b *testing.B) {
	b.ReportAllocs()
	rt := goja.New()
	newSandbox(rt, &budget{rt: rt})
	v, err := rt.RunString(`(n) => { for (let i = 0; i < n; i++) Math.abs(i) }`)
	if err != nil {
		b.Fatal(err)
	}
	fn, _ := goja.AssertFunction(v)
	b.ResetTimer()
	if _, err := fn(goja.Undefined(), rt.ToValue(b.N)); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStrings is what functions of strings cost that return parts: of a line as
// most are, and of a long one.
func BenchmarkStrings(b *testing.B) {
	b.Cleanup(stopPatternClock)
	short := `10.0.0.7 - - [14/Nov/2023:22:13:20 +0000] "GET /cart?id=7 HTTP/1.1" 200 512 "-" "curl/8.1" 0.120`
	for _, line := range []struct{ name, text string }{{"line", short}, {"long line", strings.Repeat(short+" ", 20)}} {
		for _, bm := range []struct{ name, expr string }{
			{"slice", `line.slice(0, 8)`},
			{"split", `line.split(" ")`},
			{"exec", `/^(\S+) \S+ \S+ \[([^\]]+)\]/.exec(line)`},
			{"exec backtracking", `/^(\S+) \S+ \S+ \[([^\]]+)(?=\])/.exec(line)`},
			{"replace", `line.replace(/\d+/g, (n) => n)`},
		} {
			b.Run(line.name+"/"+bm.name, func(b *testing.B) {
				b.ReportAllocs()
				rt := goja.New()
				_ = rt.Set("line", line.text+" ")
				budget := &budget{rt: rt}
				budget.start(time.Hour, 1<<40)
				newSandbox(rt, budget)
				v, err := rt.RunString(`(n) => { for (let i = 0; i < n; i++) ` + bm.expr + ` }`)
				if err != nil {
					b.Fatal(err)
				}
				fn, _ := goja.AssertFunction(v)
				b.ResetTimer()
				if _, err := fn(goja.Undefined(), rt.ToValue(b.N)); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
