package lua_test

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/stdlib"
)

// modules are the standard library and one that has what it may have some day.
var modules = append(slices.Clip(stdlib.Modules()), fake)

var thing = &scripting.ObjectType{
	Name: "fake.Thing",
	Methods: []scripting.Function{{
		Name: "add", Params: []scripting.Param{{Name: "n", Kind: scripting.KindInt}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			return args[0].(int64) + args[1].(int64), nil
		},
	}},
	String: func(data any) string { return fmt.Sprintf("thing %d", data) },
}

var fake = &scripting.Module{
	Name: "fake",
	Funcs: []scripting.Function{
		{
			Name: "call", Params: []scripting.Param{{Name: "fn", Kind: scripting.KindFunction}, {Name: "arg", Optional: true}},
			Fn: func(args []scripting.Value) (scripting.Value, error) {
				return args[0].(scripting.Callback)(args[1])
			},
		},
		{
			Name: "same", Params: []scripting.Param{{Name: "x", Kind: scripting.KindAny}},
			Fn: func(args []scripting.Value) (scripting.Value, error) { return args[0], nil },
		},
		{
			Name: "thing", Params: []scripting.Param{{Name: "n", Kind: scripting.KindInt}},
			Fn: func(args []scripting.Value) (scripting.Value, error) {
				return &scripting.Object{Type: thing, Data: args[0]}, nil
			},
		},
		{
			Name: "take", Params: []scripting.Param{{Name: "thing", Kind: scripting.KindObject, Type: thing}},
			Fn: func(args []scripting.Value) (scripting.Value, error) { return args[0], nil },
		},
		{
			Name: "panic",
			Fn:   func([]scripting.Value) (scripting.Value, error) { panic("host bug") },
		},
	},
	Types: []*scripting.ObjectType{thing},
}
