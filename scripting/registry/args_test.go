package registry_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/grafana/alloy/syntax/diag"
	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

func decode(t *testing.T, r component.Registration, attrs string) (any, error) {
	t.Helper()
	file, err := parser.ParseFile("test.alloy", []byte(attrs))
	if err != nil {
		t.Fatal(err)
	}
	args := r.NewArgs()
	sink := flowtest.NewSink("sink")
	return args, vm.New(file).Evaluate(vm.NewScope(map[string]any{"sink": sink.Receiver()}), args)
}

// TestDecodeErrors checks that the config's mistakes have line and column.
func TestDecodeErrors(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", `
		local weir = require "weir"
		return weir.transform {
			args = {
				i = weir.arg.int { default = 1 }, d = weir.arg.duration { default = "1s" }, z = weir.arg.size { default = 1 },
				l = weir.arg.list { of = weir.arg.string {}, default = {} }, e = weir.arg.enum { values = { "x", "y" }, default = "x" },
				o = weir.arg.enum { values = { "x", "y" }, optional = true }, s = weir.arg.secret { optional = true },
			},
			metrics = function() end,
		}`)
	r := registrytest.Lookup(t, f.Catalog(nil), "a.b")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	check := func(attrs, want string) {
		t.Helper()
		_, err := decode(t, r, "forward_to = [sink]\n"+attrs)
		if err == nil {
			t.Errorf("%s: no error, want %q", attrs, want)
			return
		}
		got := err.Error()
		if ds, ok := errors.AsType[diag.Diagnostics](err); ok {
			got = ds.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", attrs, got, want)
		}
	}
	const at = "test.alloy:2:"
	check(`i = "x"`, at+`5: "x" should be number, got string`)
	check(`d = "soon"`, at+`5: "soon" time: invalid duration "soon"`)
	check(`z = "5 apples"`, at+`5: "5 apples" cannot read "5 apples" as a size`)
	check(`l = [true]`, at+`6: true should be string, got bool`)
	check(`e = "z"`, at+`5: "z" cannot use "z": it must be one of x, y`)
	check(`o = "z"`, at+`5: "z" cannot use "z": it must be one of x, y`)
	check(`nope = 1`, at+`1: unrecognized attribute name "nope"`)
	check(`script { concurrency = "serial" }`, at+`24: "serial" cannot use concurrency = "serial": it must be "ordered" or "parallel" or "single" or "partition"`)
	check(`script { concurrency = "partition" }`, `cannot use script.concurrency = "partition" without by: write by = ["job"]`)
	check(`script { by = ["job"] }`, `cannot use script.by: it is for concurrency = "partition"`)
	check("script {\nquarantine { max_size = \"1KiB\" }\n}", `cannot use this script.quarantine.max_size: it must be 1MiB at least`)
	check("script {\nquarantine { max_age = \"1s\" }\n}", `cannot use script.quarantine.max_age`)
	check(`script { on_error = "explode" }`, `cannot use on_error = "explode": it must be "pass" or "drop" or "quarantine" or "hold"`)
	check(`script { on_reload = "manual" }`, `cannot use on_reload = "manual": it is not supported yet, there is "swap" or "test" or "shadow"`)
	check("script {\nlimits { memory = \"1KiB\" }\n}", `cannot use script.limits.memory = 1024: it must be between 1MiB and 1TiB`)
	check("script {\nlimits { wait = \"1h\" }\n}", `cannot use script.limits.wait = "1h0m0s": it must be between 1ms and 10m`)
	check("script {\nlimits { time = \"0s\" }\n}", `cannot use script.limits.time = "0s": it must be between 1ms and 1m`)
	check("script {\nlimits { emit = -1 }\n}", `cannot use script.limits.emit = -1: it must not be negative`)
	check("script {\nallow { http = [\"x\"] }\n}", `http: cannot use "x" as a pattern of URLs: it must begin with http:// or https://`)
	check("script {\nallow { listen = [\"x\"] }\n}", `cannot use listen in script.allow: nothing calls a transform from outside`)
	if _, err := decode(t, r, ``); err == nil || !strings.Contains(err.Error(), `missing required attribute "forward_to"`) {
		t.Errorf("without forward_to: got %v", err)
	}
}

// Arguments that are equal must compare equal: the engine leaves a node alone then.
func TestArgsCompare(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", `
		local weir = require "weir"
		return weir.transform {
			args = { l = weir.arg.list { default = { "a" } }, e = weir.arg.enum { values = { "x", "y" }, default = "x" }, o = weir.arg.int { optional = true } },
			metrics = function() end,
		}`)
	r := registrytest.Lookup(t, f.Catalog(nil), "a.b")
	args := func(attrs string) any {
		a, err := decode(t, r, "forward_to = []\n"+attrs)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := args(`o = 1`)
	if !reflect.DeepEqual(a, args(`o = 1`)) {
		t.Error("equal arguments differ")
	}
	for _, other := range []string{``, `o = 2`, "o = 1\ne = \"y\"", "o = 1\nl = []", "o = 1\nscript { on_error = \"drop\" }"} {
		if reflect.DeepEqual(a, args(other)) {
			t.Errorf("%q is equal to o = 1", other)
		}
	}
}
