package js_test

import (
	"errors"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/stdlib"
)

// modules are the standard library and one more.
var modules = append(slices.Clip(stdlib.Modules()), &scripting.Module{
	Name: "echo",
	Funcs: []scripting.Function{
		{
			Name: "same_value", Params: []scripting.Param{{Name: "x", Kind: scripting.KindAny, Optional: true}},
			Result: scripting.Result{Kind: scripting.KindAny},
			Fn:     func(args []scripting.Value) (scripting.Value, error) { return args[0], nil },
		},
		{
			Name: "fail", Params: []scripting.Param{{Name: "why", Kind: scripting.KindString}},
			Result: scripting.Result{Fails: true},
			Fn:     func(args []scripting.Value) (scripting.Value, error) { return nil, errors.New(args[0].(string)) },
		},
		{
			Name: "ask", Waits: true,
			Result: scripting.Result{Kind: scripting.KindMap, Fields: []scripting.Param{{Name: "max_bytes", Kind: scripting.KindInt}}},
			Fn: func([]scripting.Value) (scripting.Value, error) {
				m := scripting.NewMap()
				m.Set("max_bytes", int64(7))
				return m, nil
			},
		},
		{
			Name: "upper", Params: []scripting.Param{{Name: "s", Kind: scripting.KindString}},
			Result: scripting.Result{Kind: scripting.KindString},
			Fn:     func(args []scripting.Value) (scripting.Value, error) { return strings.ToUpper(args[0].(string)), nil },
		},
	},
})
