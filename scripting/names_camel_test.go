package scripting_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
)

func TestCamelFunction(t *testing.T) {
	var got scripting.Value
	f := scripting.Function{
		Name: "get_all",
		Params: []scripting.Param{
			{Name: "url", Kind: scripting.KindString},
			{Name: "options", Kind: scripting.KindMap, Optional: true, Fields: []scripting.Param{
				{Name: "max_bytes", Kind: scripting.KindInt, Optional: true},
				{Name: "form_data", Kind: scripting.KindMap, Optional: true, Of: &scripting.Param{Kind: scripting.KindAny}},
			}},
		},
		Result: scripting.Result{Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindMap, Fields: []scripting.Param{{Name: "status_code"}, {Name: "body"}}}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			got = args[1]
			m := scripting.NewMap()
			m.Set("status_code", int64(200))
			m.Set("not_declared", true)
			return &scripting.List{Items: []scripting.Value{m}}, nil
		},
	}
	camel := f.Camel()
	if camel.Name != "getAll" || camel.Params[1].Fields[0].Name != "maxBytes" || f.Params[1].Fields[0].Name != "max_bytes" {
		t.Errorf("got %+v", camel)
	}
	options, data := scripting.NewMap(), scripting.NewMap()
	data.Set("user_name", "x")
	options.Set("maxBytes", int64(5))
	options.Set("formData", data)
	out, err := camel.Call(nil, []scripting.Value{"u", options})
	if err != nil {
		t.Fatal(err)
	}
	in := got.(*scripting.Map)
	if v, _ := in.Get("max_bytes"); v != int64(5) {
		t.Errorf("got %v", in.Keys())
	}
	if v, _ := in.Get("form_data"); v.(*scripting.Map).Keys()[0] != "user_name" {
		t.Errorf("what users name was renamed: %v", v)
	}
	if keys := strings.Join(out.(*scripting.List).Items[0].(*scripting.Map).Keys(), " "); keys != "statusCode not_declared" {
		t.Errorf("got %s", keys)
	}
	wrong := scripting.NewMap()
	wrong.Set("max_bytes", int64(5))
	if _, err := camel.Call(nil, []scripting.Value{"u", wrong}); err == nil || !strings.Contains(err.Error(), "maxBytes") {
		t.Errorf("got %v, want an error that says maxBytes", err)
	}
	if plain := (&scripting.Function{Name: "a_b"}).Camel(); plain.Fn != nil {
		t.Error("a function that a language binds has got code")
	}
}
