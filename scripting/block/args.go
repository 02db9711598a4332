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

// Arguments are a value made by TypeOf, taken apart.
type Arguments struct {
	Values    map[string]any       // what the script sees in ctx.args
	Receivers [][]*flow.Receiver   // forward_to, then the routes in the order of outputs
	Interval  time.Duration        // of poll; 0 without
	Listen    *Listen              // nil: no address of its own
	Batch     scripting.BatchBlock // of a sink
	Journal   outbox.Arguments     // of a sink
	Script    Script
}

// ArgumentsOf takes apart v, a value made by the function that TypeOf returned for
// def.
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

// TypeOf makes the type that the config decoder fills and a maker of new
// values with the defaults in. The fields are the script's arguments in order,
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

// hostFields are the attributes and blocks of the host in a block of this
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

// Go fields of what the host adds.
const (
	forwardField  = "ForwardTo"
	intervalField = "Interval"
	listenField   = "Listen"
	batchField    = "Batch"
	journalField  = "Journal"
)

// routesField is the Go field of the block routes.
const routesField = "Routes"

// routesType is the type of the block routes: a list of receivers for each
// output. All must be there, so that what is routed is not lost by a line that
// was forgotten; an empty list drops it.
func routesType(outputs []string) reflect.Type {
	fields := make([]reflect.StructField, len(outputs))
	for i, name := range outputs {
		fields[i] = reflect.StructField{
			Name: "To_" + name, Type: reflect.TypeFor[[]*flow.Receiver](), Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", name+",attr")),
		}
	}
	return reflect.StructOf(fields)
}

// receiversByOutput are the receivers by way: those of forward_to, then those of each output;
// nil of a component that sends nothing.
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
