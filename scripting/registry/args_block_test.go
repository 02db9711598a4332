package registry_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

const manyArgs = `
local weir = require "weir"
return weir.transform {
	args = {
		ts    = weir.arg.targets { default = { { __address__ = "a:1" } } },
		re    = weir.arg.regexp { default = "^go_" },
		kinds = weir.arg.list { of = weir.arg.enum { values = { "x", "y" } }, default = { "x" } },
		by    = weir.arg.map { of = weir.arg.list { of = weir.arg.enum { values = { "x", "y" } } }, optional = true },
		rule  = weir.arg.block { repeated = true, optional = true, doc = "A rule.", fields = {
			name  = weir.arg.string { doc = "Its name." },
			after = weir.arg.duration { default = "90s" },
			mode  = weir.arg.enum { values = { "keep", "drop" }, default = "keep" },
			match = weir.arg.regexp { optional = true },
			when  = weir.arg.block { optional = true, fields = {
				job = weir.arg.string { default = "api" },
				env = weir.arg.list { of = weir.arg.enum { values = { "dev", "prod" } }, default = { "prod" } },
			} },
		} },
		tls   = weir.arg.block { fields = { insecure = weir.arg.bool { default = false }, password = weir.arg.secret { optional = true } } },
	},
	metrics = function(batch, ctx)
		batch:drop_where [[ name in args.kinds || args.tls.insecure || name matches args.re ]]
		local a = ctx.args
		local out = {}
		for _, r in ipairs(a.rule) do
			out[#out + 1] = r.name .. "," .. r.after .. "," .. r.mode .. "," .. tostring(r.match and r.match:match("abc"))
				.. "," .. (r.when and r.when.job .. "/" .. table.concat(r.when.env, "+") or "-")
		end
		batch:set_label("seen", table.concat(out, ";"))
		batch:set_label("addr", a.ts[1].__address__)
		batch:set_label("re", tostring(a.re:match("go_x")))
	end,
}`

// modulesCatalog is a catalog whose scripts have the standard library.
func modulesCatalog(f registrytest.Folder) component.Catalog {
	f.T.Helper()
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, UserDir: f.Dir, Modules: stdlib.Modules()})
	if err != nil {
		f.T.Fatal(err)
	}
	return c
}

// inConfig decodes the attributes of a block a.b as weir does.
func inConfig(t *testing.T, r component.Registration, attrs string, sink *flowtest.Sink) (any, config.Diagnostics) {
	t.Helper()
	cfg, ds := config.Parse(map[string]string{"test.alloy": "a.b \"x\" {\nforward_to = [prometheus.echo.x.receiver]\n" + attrs + "\n}\n"})
	if len(ds) > 0 {
		t.Fatal(ds.Err())
	}
	scope := cfg.NewScope("test")
	scope.Set("prometheus.echo.x", struct {
		Receiver *flow.Receiver `alloy:"receiver,attr"`
	}{sink.Receiver()})
	args := r.NewArgs()
	return args, cfg.Blocks[0].Decode(scope, args)
}

// Blocks, targets and regular expressions come from the config into the script.
func TestBlocksOfArguments(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", manyArgs)
	r := registrytest.Lookup(t, modulesCatalog(f), "a.b")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	check := func(attrs, want string) {
		t.Helper()
		sink := flowtest.NewSink("sink")
		args, ds := inConfig(t, r, attrs, sink)
		if len(ds) > 0 {
			t.Errorf("%s: %v", attrs, ds.Err())
			return
		}
		n := componenttest.New(t, "a.b.x")
		c := n.Build(t, r, args)
		b := registrytest.Text(t, 1, "up 1\nx 2\ngo_y 3\nabc 4\n")
		if err := c.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		got := ""
		if last := sink.Last(); last != nil {
			got = string(batch.AppendTextAt(nil, last, 1000))
		}
		registrytest.Same(t, got, want)
	}
	// Defaults: x is among the kinds, go_y matches.
	check("tls { }", "up{addr=\"a:1\",re=\"true\"} 1\nabc{addr=\"a:1\",re=\"true\"} 4\n")
	check(`
		ts = [{ __address__ = "b:2", x = "y" }]
		re = "^abc$"
		kinds = ["y", "x"]
		by = { k = ["y"] }
		rule { name = "r1" }
		rule {
			name  = "r2"
			after = "2s"
			mode  = "drop"
			match = "b"
			when { env = ["dev", "prod"] }
		}
		rule {
			name = "r3"
			match = "nope"
			when { job = "web" }
		}
		tls { password = "hush" }`,
		"up{addr=\"b:2\",re=\"false\",seen=\"r1,90,keep,nil,-;r2,2,drop,true,api/dev+prod;r3,90,keep,false,web/prod\"} 1\n"+
			"go_y{addr=\"b:2\",re=\"false\",seen=\"r1,90,keep,nil,-;r2,2,drop,true,api/dev+prod;r3,90,keep,false,web/prod\"} 3\n")
	check("tls { insecure = true }", "")

	// Mistakes have their line and column.
	wrong := func(attrs string, want ...string) {
		t.Helper()
		_, ds := inConfig(t, r, attrs, flowtest.NewSink("sink"))
		var got []string
		for _, d := range ds {
			got = append(got, d.Error())
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(got, "\n"), w) {
				t.Errorf("%s\ngot  %q\nwant %q", attrs, got, w)
			}
		}
		if len(ds) != len(want) {
			t.Errorf("%s: got %d mistakes, want %d: %q", attrs, len(ds), len(want), got)
		}
	}
	wrong("", "test.alloy:1:1: missing required block tls")
	wrong("tls { }\ntls { }", "test.alloy:4:1: block tls can be there only once")
	wrong("tls { secure = 1 }", "test.alloy:3:7: unknown attribute tls.secure")
	wrong("tls { }\nrule { }", "test.alloy:4:1: missing required attribute rule.name")
	wrong("tls { }\nrule {\n name = \"a\"\n mode = \"keeep\"\n}", `test.alloy:6:9: rule.mode: cannot use "keeep": it must be one of keep, drop`)
	wrong("tls { }\nrule {\n name = \"a\"\n when {\n  env = [\"prod\", \"test\"]\n }\n}", `test.alloy:7:9: rule.when.env: cannot use "test": it must be one of dev, prod`)
	wrong("tls { }\nkinds = [\"x\", \"z\"]", `test.alloy:4:9: kinds: cannot use "z": it must be one of x, y`)
	wrong("tls { }\nby = { a = [\"x\"], b = [\"w\"] }", `test.alloy:4:6: by: b: cannot use "w": it must be one of x, y`)
	wrong("tls { }\nre = \"(\"", "test.alloy:4:6: re: cannot use \"(\" as a regular expression: missing closing ): `(`")
	wrong("tls { }\nrule {\n name = \"a\"\n match = \"[\"\n}", "test.alloy:6:10: rule.match: cannot use \"[\" as a regular expression: missing closing ]: `[`")
	wrong("tls { }\nts = [{ a = 1 }, \"x\"]", "test.alloy:4:18: ts[1]: should be map(string), got string")
	wrong("tls { }\nrule = 1", "rule is a block, not an attribute")
}

// Two blocks with equal arguments compare equal, and different ones do not:
// the engine leaves a node alone by that.
func TestBlocksOfArgumentsCompare(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", manyArgs)
	r := registrytest.Lookup(t, modulesCatalog(f), "a.b")
	sink := flowtest.NewSink("sink")
	args := func(attrs string) any {
		a, ds := inConfig(t, r, attrs, sink)
		if len(ds) > 0 {
			t.Fatal(ds.Err())
		}
		return a
	}
	const base = "tls { }\nrule { name = \"a\" }\n"
	if !reflect.DeepEqual(args(base), args(base)) {
		t.Error("equal arguments differ")
	}
	for _, other := range []string{"tls { }", "tls { insecure = true }\nrule { name = \"a\" }", base + `kinds = ["y"]`, base + `re = "x"`, base + "ts = []", base + "rule { name = \"a\" }"} {
		if reflect.DeepEqual(args(base), args(other)) {
			t.Errorf("%q is equal to %q", other, base)
		}
	}
}

func TestDescribeBlocksOfArguments(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", manyArgs)
	r := registrytest.Lookup(t, modulesCatalog(f), "a.b")
	var got strings.Builder
	for _, d := range config.Describe(r.NewArgs()) {
		if strings.HasPrefix(d.Path, "script") || d.Path == "forward_to" {
			continue
		}
		fmt.Fprintf(&got, "%s: %s required=%v default=%s repeated=%v; %s\n", d.Path, d.Type, d.Required, d.Default, d.Repeated, r.Doc.Args[d.Path])
	}
	registrytest.Same(t, got.String(), `ts: list(map(string)) required=false default=[{ __address__ = "a:1" }] repeated=false; 
re: string required=false default="^go_" repeated=false; A regular expression (RE2).
kinds: list(string) required=false default=["x"] repeated=false; One of "x" or "y".
by: map(list(string)) required=false default= repeated=false; One of "x" or "y".
rule: block required=false default= repeated=true; A rule.
rule.name: string required=true default= repeated=false; Its name.
rule.after: duration required=false default="1m30s" repeated=false; 
rule.mode: string required=false default="keep" repeated=false; One of "keep" or "drop".
rule.match: string required=false default= repeated=false; A regular expression (RE2).
rule.when: block required=false default= repeated=false; 
rule.when.job: string required=false default="api" repeated=false; 
rule.when.env: list(string) required=false default=["prod"] repeated=false; One of "dev" or "prod".
tls: block required=true default= repeated=false; 
tls.insecure: bool required=false default=false repeated=false; 
tls.password: secret required=false default= repeated=false; 
`)
	if want := "tls {\n  }\n"; !strings.Contains(r.Doc.Example, want) {
		t.Errorf("got example\n%s\nwant in it %q", r.Doc.Example, want)
	}
	sink := flowtest.NewSink("sink")
	args, ds := inConfig(t, r, "rule { name = \"a\" }\ntls { password = \"hush\" }\nkinds = [\"y\"]", sink)
	if len(ds) > 0 {
		t.Fatal(ds.Err())
	}
	shown := config.Redact(args).(map[string]any)
	delete(shown, "script")
	want := map[string]any{
		"ts": []any{map[string]any{"__address__": "a:1"}}, "re": "^go_", "kinds": []any{"y"}, "by": map[string]any{},
		"rule": []any{map[string]any{"name": "a", "after": "1m30s", "mode": "keep", "match": nil}},
		"tls":  map[string]any{"insecure": false, "password": "(secret)"}, "forward_to": []any{"sink.receiver"},
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Mistakes in a declaration have the line of it.
func TestArgumentDeclarations(t *testing.T) {
	f := registrytest.NewFolder(t)
	wrong := func(arg, want string) {
		t.Helper()
		path := f.Write("a/b.lua", "local weir = require \"weir\"\nreturn weir.transform {\n args = {\n x = "+arg+"\n },\n metrics = function() end }")
		c := modulesCatalog(f)
		c.Refresh([]string{path})
		r := registrytest.Lookup(t, c, "a.b")
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || !strings.Contains(r.Err.Error(), "scripts/a/b.lua:") {
			t.Errorf("%s\ngot  %v\nwant %s", arg, r.Err, want)
		}
	}
	wrong(`weir.arg.block {}`, "cannot declare weir.arg.block without fields")
	wrong(`weir.arg.block { fields = { a = 1 } }`, `cannot use 1 as field "a": write weir.arg.string{} or another type`)
	wrong(`weir.arg.block { fields = { ["a b"] = weir.arg.string {} } }`, `cannot name a field "a b": it must be an identifier`)
	wrong(`weir.arg.block { fields = { a = weir.arg.string {} }, default = {} }`, `cannot use "default" in weir.arg.block: there is fields, repeated, optional, doc`)
	wrong(`weir.arg.block { fields = { a = weir.arg.string {} }, repeat_ = true }`, `did you mean repeated?`)
	wrong(`weir.arg.block { fields = { a = weir.arg.string {} }, repeated = "yes" }`, `cannot use "yes" as "repeated" of weir.arg.block: it must be a bool`)
	wrong(`weir.arg.list { of = weir.arg.block { fields = { a = weir.arg.string {} } } }`, "a block that may be there several times is weir.arg.block { repeated = true, … }")
	wrong(`weir.arg.list { of = weir.arg.string { default = "x" } }`, "an element is there or it is not")
	wrong(`weir.arg.list { of = weir.arg.enum { values = { "a" } }, default = { "b" } }`, `cannot use this default of weir.arg.list: element 1: "b" is not one of a`)
	wrong(`weir.arg.regexp { default = "(" }`, `cannot use this default of weir.arg.regexp: cannot use "(" as a regular expression`)
	wrong(`weir.arg.targets { default = { 1 } }`, "cannot use this default of weir.arg.targets: element 1: 1 is not a map")
	wrong(`weir.arg.regex {}`, "did you mean weir.arg.regexp?")
	wrong(`weir.arg.string { defualt = "x" }`, `did you mean default?`)
}
