package expr_test

import (
	"testing"

	exprlang "github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/weir-run/weir/engine/expr"
)

func BenchmarkBool(b *testing.B) {
	x := expr.Sample{Series: series("counter", "http_requests_total", "cluster", "eu-1", "code", "200", "env", "prod", "instance", "10.0.0.1:9100",
		"job", "api", "method", "GET", "path", "/users/1", "zone", "a"), Value: 12, Time: 1700000000000}
	f := func(name, src string) {
		p, err := expr.Compile(src, expr.Bool, fuzzArgs)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/closures", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = p.Bool(&x)
			}
		})
		b.Run(name+"/rest", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = p.Rest(&x)
			}
		})
		ref, err := exprlang.Compile(src, exprlang.Env(env(x)))
		if err != nil {
			b.Fatal(err)
		}
		e := env(x)
		var machine vm.VM
		b.Run(name+"/machine", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = machine.Run(ref, e)
			}
		})
	}
	f("value", `value > 9`)
	f("label", `labels.job == "api"`)
	f("both", `labels.job == "api" && value > 3`)
	f("list", `name startsWith "go_" || labels.job in args.keep && !(type == "gauge")`)
	f("computed", `max(value, 1) * 2 > 3 && value / 2 < 100`)
	f("regexp", `labels.path matches "^/users/[0-9]+$"`)
}
