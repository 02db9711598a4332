package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/node"
)

// entry is a script of a catalog, and what its registration needs of it.
type entry struct {
	node.Script
	compilers *Compilers
	trial     *trial // nil: it has no tests
	dir       string // absolute, the folder of scripts; "" without
	tested    bool   // there is a test file; the trial also runs examples
	// past is the catalog if the script has a history; otherwise nil.
	past *catalog
}

// testsFirst reports whether a version takes over only if its tests pass.
func (s *entry) testsFirst(b block.Script) bool {
	return s.trial != nil && (b.OnReload == block.OnReloadTest || b.OnReload == block.OnReloadShadow || b.OnReload == "" && s.tested)
}

// try is the registration's Trial.
func (s *entry) try(ctx context.Context, t component.Trial) *component.Rejection {
	b := block.ArgumentsOf(s.Definition, t.Args).Script
	if s.testsFirst(b) {
		t.Begin(component.StepTest)
		if r := s.trial.run(ctx); r != nil {
			return s.withLastGood(r, t.Node)
		}
	}
	running, ok := t.Running.(*node.Component)
	if !ok {
		return s.atStart(t.Node, &b)
	}
	if b.OnReload == block.OnReloadShadow && running.Version() != s.Version {
		t.Begin(component.StepShadow)
		var d *node.Difference
		err := s.compilers.shadow(ctx, func() (err error) {
			d, err = running.Shadow(ctx, &s.Script, t.Args)
			return err
		})
		if err != nil {
			return &component.Rejection{Step: component.StepShadow, Err: err}
		}
		if d.Batches == 0 { // an earlier comparison says more
			if r := s.refusal(t.Node, &b, component.StepShadow); r != nil {
				return r
			}
		}
	}
	if s.Definition.Kind != scripting.Transform {
		return nil
	}
	if err := running.Canary(ctx, &s.Script, t.Args, func() { t.Begin(component.StepCanary) }); err != nil {
		return &component.Rejection{Step: component.StepCanary, Err: err}
	}
	return nil
}

// compare is the registration's Compare.
func (s *entry) compare(ctx context.Context, t component.Trial) (fmt.Stringer, *component.Rejection) {
	running, ok := t.Running.(*node.Component)
	if !ok {
		return nil, nil
	}
	d := &node.Difference{Running: running.Version(), Version: s.Version}
	if block.ArgumentsOf(s.Definition, t.Args).Script.OnReload != block.OnReloadShadow {
		d.Note = `on_reload is not "shadow"`
		return d, nil
	}
	err := s.compilers.shadow(ctx, func() (err error) {
		d, err = running.Compare(ctx, &s.Script, t.Args)
		return err
	})
	switch {
	case ctx.Err() != nil:
		d.Note, d.Refused = context.Cause(ctx).Error(), ""
	case err != nil:
		return d, &component.Rejection{Step: component.StepShadow, Err: err}
	}
	return d, nil
}

// register makes the registration of a script. replaced says that one of the
// same name ships with weir. Its Err joins what is wrong with the script's
// constant expressions.
func register(s *entry, h scripting.Header, replaced bool) component.Registration {
	_, s.NewArgs = block.TypeOf(s.Definition)
	zero := block.ArgumentsOf(s.Definition, s.NewArgs())
	if err := scripting.CheckExprs(s.Program, scripting.ExprValues(s.Definition.Args, zero.Values)); err != nil {
		return component.Registration{Name: s.Name, Err: err}
	}
	reg := component.Registration{
		Name:         s.Name,
		Accepts:      s.Definition.Accepts(),
		Sends:        s.Definition.Sends,
		NewArgs:      s.NewArgs,
		Exports:      node.ExportsOf(s.Definition),
		ExportsLater: len(s.Definition.Exports) > 0,
		Check:        s.check,
		Grants:       s.grants,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return node.New(&s.Script, o, args, previous)
		},
		Trial:   s.try,
		Compare: s.compare,
		Doc:     s.doc(h, replaced),
	}
	reg.Origin = s.origin()
	if len(s.Definition.HTTP) > 0 {
		reg.NeedsServices, reg.Overlaps = []string{"http"}, true
	}
	return reg
}

// origin says which file declares which arguments; "" if it declares none.
func (s *entry) origin() string {
	if len(s.Definition.Args) == 0 {
		return ""
	}
	where := s.File.Name
	if s.File.Path == "" {
		where = "the shipped script " + s.Name
	}
	var names []string
	for _, a := range s.Definition.Args {
		name := a.Name
		if !a.Optional && a.Default == nil && a.Kind != scripting.ArgBlock {
			name += " (required)"
		}
		names = append(names, name)
	}
	return where + " declares " + strings.Join(names, ", ")
}

func (s *entry) doc(h scripting.Header, replaced bool) component.Doc {
	d := component.Doc{Summary: h.Summary, Args: block.Docs(s.Definition.Kind), Exports: map[string]string{}}
	if d.Summary == "" {
		d.Summary = "A scripted component without a comment at the top of its file."
	}
	where := "Defined in " + s.File.Name
	if s.File.Path == "" {
		where = "Ships with weir"
	}
	if replaced {
		where += ", which replaces the component of this name that ships with weir"
	}
	d.Summary += "\n\n" + where + "."
	var attrs strings.Builder
	writeArgs(&attrs, d.Args, s.Definition.Args, "", "  ")
	if len(h.Examples) > 0 && h.Examples[0].Args != "" {
		attrs.Reset()
		for line := range strings.Lines(h.Examples[0].Args) {
			attrs.WriteString("  " + line)
		}
	}
	for _, e := range s.Definition.Exports {
		d.Exports[e.Name] = e.Manual()
	}
	d.Example = fmt.Sprintf("%s \"default\" {\n%s%s%s}\n", s.Name, attrs.String(), s.hostExample(), s.routesDoc(d.Args))
	return d
}

// hostExample is what an example must have of what is the host's.
func (s *entry) hostExample() (text string) {
	if s.Definition.Poll && s.Definition.Interval == 0 {
		text += "  interval   = \"1m\"\n"
	}
	if s.Definition.Sends != 0 {
		text += "  forward_to = [prometheus.remote_write.default.receiver]\n"
	}
	return text
}

// writeArgs adds the manual of arguments to docs, and to b what an example must
// have of them.
func writeArgs(b *strings.Builder, docs map[string]string, args []*scripting.Arg, path, indent string) {
	for _, a := range args {
		docs[path+a.Name] = a.Manual()
		needed := a.Default == nil && !a.Optional
		switch {
		case a.Kind == scripting.ArgBlock:
			var inner strings.Builder
			writeArgs(&inner, docs, a.Fields, path+a.Name+".", indent+"  ")
			if needed {
				fmt.Fprintf(b, "%s%s {\n%s%s}\n", indent, a.Name, inner.String(), indent)
			}
		case needed:
			fmt.Fprintf(b, "%s%s = %s\n", indent, a.Name, a.ConfigExample())
		}
	}
}

// routesDoc adds the manual of the block routes to docs and returns an example.
func (s *entry) routesDoc(docs map[string]string) string {
	if len(s.Definition.Outputs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n  routes {\n")
	docs["routes"] = "Receivers of what the script sends to its outputs instead of forward_to."
	for _, name := range s.Definition.Outputs {
		docs["routes."+name] = fmt.Sprintf("Receivers of output %q; an empty list drops it.", name)
		fmt.Fprintf(&b, "    %s = [prometheus.remote_write.other.receiver]\n", name)
	}
	return b.String() + "  }\n"
}
