package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/protocol"
)

// decode decodes arguments as weir decodes them: they are written as a config and
// read by the same decoder, so that defaults, conversions, Validate and Check are those
// of the component. receivers are those of the arguments, in order.
func decode(r component.Registration, in *protocol.Arguments, receivers []*flow.Receiver) (args any, problems []*protocol.Problem) {
	w := writer{paths: []string{""}}
	w.text.WriteString(r.Name + " \"x\" {\n")
	w.body(in.GetBody(), "")
	w.text.WriteString("}\n")
	cfg, ds := config.Parse(map[string]string{"c.alloy": w.text.String()})
	args = r.NewArgs()
	if len(cfg.Blocks) == 1 && !ds.HasErrors() {
		scope := cfg.NewScope("")
		for i, recv := range receivers {
			scope.SetVariable(receiverName(i), "", config.Value{V: recv})
		}
		ds = append(ds, cfg.Blocks[0].Decode(scope, args)...)
	}
	for _, d := range ds.Sort() {
		p := &protocol.Problem{Message: d.Msg, Detail: d.Detail, Warning: d.Severity == config.Warning}
		if d.Hint != "" {
			p.Message += " (" + d.Hint + ")"
		}
		if d.Line > 0 && d.Line <= len(w.paths) {
			p.Path = w.paths[d.Line-1]
		}
		problems = append(problems, p)
	}
	if !ds.HasErrors() && r.Check != nil {
		for _, e := range r.Check(args, func(string) bool { return true }) {
			problems = append(problems, &protocol.Problem{Path: e.Path, Message: e.Error(), Detail: e.Detail, Warning: e.Warning})
		}
	}
	return args, problems
}

// failure returns the errors among problems as one text, or "".
func failure(problems []*protocol.Problem) string {
	var msgs []string
	for _, p := range problems {
		if !p.Warning {
			msgs = append(msgs, p.Message)
		}
	}
	return strings.Join(msgs, "; ")
}

// placeholders returns receivers that are only used to check arguments.
func placeholders(in *protocol.Arguments) (out []*flow.Receiver) {
	for _, r := range in.GetReceivers() {
		out = append(out, flow.NewReceiver(r.Node, batch.Signals(r.Accepts), nil, func(*flow.PanicError) {}))
	}
	return out
}

func receiverName(i int) string { return fmt.Sprintf("receiver_%d", i) }

// writer writes a body as a config, with one attribute per line.
type writer struct {
	text  strings.Builder
	paths []string // of the argument in each line
}

func (w *writer) line(path, format string, a ...any) {
	w.paths = append(w.paths, path)
	fmt.Fprintf(&w.text, format+"\n", a...)
}

func (w *writer) body(b *protocol.Body, path string) {
	for _, name := range slices.Sorted(maps.Keys(b.GetAttributes())) {
		w.line(join(path, name), "%s = %s", name, literal(b.Attributes[name]))
	}
	for _, in := range b.GetBlocks() {
		label := ""
		if l := in.GetBody().GetLabel(); l != "" {
			label = " " + strconv.Quote(l)
		}
		at := join(path, in.Name)
		w.line(at, "%s%s {", in.Name, label)
		w.body(in.Body, at)
		w.line(at, "}")
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// literal returns a value in config syntax.
func literal(v *protocol.Value) string {
	switch k := v.GetKind().(type) {
	case *protocol.Value_Bool:
		return strconv.FormatBool(k.Bool)
	case *protocol.Value_Integer:
		return strconv.FormatInt(k.Integer, 10)
	case *protocol.Value_Number:
		return strconv.FormatFloat(k.Number, 'g', -1, 64)
	case *protocol.Value_String_:
		return strconv.Quote(k.String_)
	case *protocol.Value_Receiver:
		return receiverName(int(k.Receiver))
	case *protocol.Value_List:
		parts := make([]string, len(k.List.Values))
		for i, e := range k.List.Values {
			parts[i] = literal(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *protocol.Value_Map:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(k.Map.Values)) {
			parts = append(parts, strconv.Quote(key)+" = "+literal(k.Map.Values[key]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return "null"
}
