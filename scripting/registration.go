package scripting

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/component"
)

// entry is a script of a catalog, and what its registration needs of it.
type entry struct {
	script
	trial  *trial // nil: it has no tests
	dir    string // absolute, the folder of scripts; "" without
	tested bool   // there is a test file; the trial also runs examples
}

// testsFirst reports whether a version takes over only if its tests pass.
func (s *entry) testsFirst(b ScriptBlock) bool {
	return s.trial != nil && (b.OnReload == OnReloadTest || b.OnReload == "" && s.tested)
}

// register makes the registration of a script. replaced says that one of the
// same name ships with weir. Its Err joins what is wrong with the script's
// constant expressions.
func register(s *entry, h Header, replaced bool) component.Registration {
	_, s.newArgs = argsType(s.def)
	zero := scriptArgs(s.def, s.newArgs())
	if err := checkExprs(s.program, exprValues(s.def.Args, zero.values)); err != nil {
		return component.Registration{Name: s.name, Err: err}
	}
	reg := component.Registration{
		Name:         s.name,
		Accepts:      s.def.Accepts(),
		Sends:        s.def.Sends,
		NewArgs:      s.newArgs,
		Exports:      exportsOf(s.def),
		ExportsLater: len(s.def.Exports) > 0,
		Check:        s.check,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return newComponent(&s.script, o, args, previous)
		},
		Doc: s.doc(h, replaced),
	}
	reg.Origin = s.origin()
	if s.trial != nil {
		reg.Trial = func(ctx context.Context, args any) *component.Rejection {
			if !s.testsFirst(scriptArgs(s.def, args).block) {
				return nil
			}
			return s.trial.run(ctx)
		}
	}
	if len(s.def.HTTP) > 0 {
		reg.NeedsServices, reg.Overlaps = []string{"http"}, true
	}
	return reg
}

// origin says which file declares which arguments; "" if it declares none.
func (s *entry) origin() string {
	if len(s.def.Args) == 0 {
		return ""
	}
	where := s.file.Name
	if s.file.Path == "" {
		where = "the shipped script " + s.name
	}
	var names []string
	for _, a := range s.def.Args {
		name := a.Name
		if !a.Optional && a.Default == nil && a.Kind != ArgBlock {
			name += " (required)"
		}
		names = append(names, name)
	}
	return where + " declares " + strings.Join(names, ", ")
}

func (s *entry) doc(h Header, replaced bool) component.Doc {
	d := component.Doc{Summary: h.Summary, Args: hostDocs(s.def.Kind), Exports: map[string]string{}}
	if d.Summary == "" {
		d.Summary = "A scripted component without a comment at the top of its file."
	}
	where := "Defined in " + s.file.Name
	if s.file.Path == "" {
		where = "Ships with weir"
	}
	if replaced {
		where += ", which replaces the component of this name that ships with weir"
	}
	d.Summary += "\n\n" + where + "."
	var attrs strings.Builder
	writeArgs(&attrs, d.Args, s.def.Args, "", "  ")
	if len(h.Examples) > 0 && h.Examples[0].Args != "" {
		attrs.Reset()
		for line := range strings.Lines(h.Examples[0].Args) {
			attrs.WriteString("  " + line)
		}
	}
	for _, e := range s.def.Exports {
		d.Exports[e.Name] = e.docs()
	}
	d.Example = fmt.Sprintf("%s \"default\" {\n%s%s%s}\n", s.name, attrs.String(), s.hostExample(), s.routesDoc(d.Args))
	return d
}

// hostExample is what an example must have of what is the host's.
func (s *entry) hostExample() (text string) {
	if s.def.Poll && s.def.Interval == 0 {
		text += "  interval   = \"1m\"\n"
	}
	if s.def.Sends != 0 {
		text += "  forward_to = [prometheus.remote_write.default.receiver]\n"
	}
	return text
}

// writeArgs adds the manual of arguments to docs, and to b what an example must
// have of them.
func writeArgs(b *strings.Builder, docs map[string]string, args []*Arg, path, indent string) {
	for _, a := range args {
		docs[path+a.Name] = a.docs()
		needed := a.Default == nil && !a.Optional
		switch {
		case a.Kind == ArgBlock:
			var inner strings.Builder
			writeArgs(&inner, docs, a.Fields, path+a.Name+".", indent+"  ")
			if needed {
				fmt.Fprintf(b, "%s%s {\n%s%s}\n", indent, a.Name, inner.String(), indent)
			}
		case needed:
			fmt.Fprintf(b, "%s%s = %s\n", indent, a.Name, a.example())
		}
	}
}

// routesDoc adds the manual of the block routes to docs and returns an example.
func (s *entry) routesDoc(docs map[string]string) string {
	if len(s.def.Outputs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n  routes {\n")
	docs["routes"] = "Receivers of what the script sends to its outputs instead of forward_to."
	for _, name := range s.def.Outputs {
		docs["routes."+name] = fmt.Sprintf("Receivers of output %q; an empty list drops it.", name)
		fmt.Fprintf(&b, "    %s = [prometheus.remote_write.other.receiver]\n", name)
	}
	return b.String() + "  }\n"
}
