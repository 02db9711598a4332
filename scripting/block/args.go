package block

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/scripting"
)

// Arguments are the parts of a value whose type TypeOf created.
type Arguments struct {
	Values    map[string]any       // values for ctx.args
	Receivers [][]*flow.Receiver   // forward_to, then the routes in the order of outputs
	Interval  time.Duration        // of poll; 0 if there is none
	Listen    *Listen              // nil if it does not have its own address
	Batch     scripting.BatchBlock // of a sink
	Journal   outbox.Arguments     // of a sink
	Script    Script
}

// ArgumentsOf splits v, a value created by the function that TypeOf returned
// for def.
func ArgumentsOf(def *scripting.Definition, v any) Arguments {
	rv := reflect.ValueOf(v).Elem()
	a := Arguments{Values: scripting.ArgValues(def.Args, rv), Receivers: receiversByOutput(def, rv), Script: scriptBlock(rv.FieldByName("Script").Interface())}
	if def.Poll {
		a.Interval = time.Duration(rv.FieldByName(intervalField).Int())
	}
	if len(def.HTTP) > 0 {
		a.Listen = rv.FieldByName(listenField).Interface().(*Listen)
	}
	if def.Kind == scripting.Sink {
		a.Batch = rv.FieldByName(batchField).Interface().(scripting.BatchBlock)
		a.Journal = rv.FieldByName(journalField).Interface().(outbox.Arguments)
	}
	a.Script.OnError = cmp.Or(a.Script.OnError, def.DefaultOnError())
	return a
}

// TypeOf creates the type for the config decoder, and a function that creates
// values with the defaults. The fields are the script's arguments in order,
// then hostFields.
func TypeOf(def *scripting.Definition) (reflect.Type, func() any) {
	fields := append(scripting.ArgFields(def.Args), hostFields(def)...)
	t := reflect.StructOf(fields)
	return t, func() any {
		p := reflect.New(t)
		scripting.SetArgDefaults(p.Elem(), def.Args)
		if def.Interval > 0 {
			p.Elem().FieldByName(intervalField).SetInt(int64(def.Interval))
		}
		if def.Kind == scripting.Sink {
			p.Elem().FieldByName(batchField).Set(reflect.ValueOf(def.Batch))
			p.Elem().FieldByName(journalField).Addr().Interface().(*outbox.Arguments).SetToDefault()
		}
		p.Elem().FieldByName("Script").Addr().Interface().(interface{ SetToDefault() }).SetToDefault()
		return p.Interface()
	}
}

// hostFields returns the attributes and blocks of the host in the block of this
// definition.
func hostFields(def *scripting.Definition) (fields []reflect.StructField) {
	add := func(name string, t reflect.Type, tag string) {
		fields = append(fields, reflect.StructField{Name: name, Type: t, Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", tag))})
	}
	if def.Sends != 0 {
		add(forwardField, reflect.TypeFor[[]*flow.Receiver](), "forward_to,attr")
	}
	if len(def.Outputs) > 0 {
		add(routesField, routesType(def.Outputs), "routes,block")
	}
	switch {
	case def.Interval > 0:
		add(intervalField, reflect.TypeFor[time.Duration](), "interval,attr,optional")
	case def.Poll:
		add(intervalField, reflect.TypeFor[time.Duration](), "interval,attr")
	}
	if len(def.HTTP) > 0 {
		add(listenField, reflect.TypeFor[*Listen](), "listen,block,optional")
	}
	if def.Kind == scripting.Sink {
		add(batchField, reflect.TypeFor[scripting.BatchBlock](), "batch,block,optional")
		add(journalField, reflect.TypeFor[outbox.Arguments](), "journal,block,optional")
	}
	add("Script", scriptType(def), "script,block,optional")
	return fields
}

// Go names of the host's fields.
const (
	forwardField  = "ForwardTo"
	intervalField = "Interval"
	listenField   = "Listen"
	batchField    = "Batch"
	journalField  = "Journal"
)

// routesField is the Go field of the block routes.
const routesField = "Routes"

// routesType returns the type of the block routes: a list of receivers for each
// output. All outputs are required, so that routed data is not lost because one
// was forgotten. An empty list drops the data.
func routesType(outputs []string) reflect.Type {
	fields := make([]reflect.StructField, len(outputs))
	for i, name := range outputs {
		fields[i] = reflect.StructField{
			Name: "To_" + name, Type: reflect.TypeFor[[]*flow.Receiver](), Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", name+",attr")),
		}
	}
	return reflect.StructOf(fields)
}

// receiversByOutput returns the receivers by way: those of forward_to, then
// those of each output. It is nil if the component sends nothing.
func receiversByOutput(def *scripting.Definition, args reflect.Value) [][]*flow.Receiver {
	if def.Sends == 0 {
		return nil
	}
	out := [][]*flow.Receiver{args.FieldByName(forwardField).Interface().([]*flow.Receiver)}
	for _, name := range def.Outputs {
		out = append(out, args.FieldByName(routesField).FieldByName("To_"+name).Interface().([]*flow.Receiver))
	}
	return out
}
