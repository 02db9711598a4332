package scripting

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Exports are what a scripted component exports that takes data.
type Exports struct {
	// Receiver takes what the script is to see.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// script is a compiled component and what its registration needs of it.
type script struct {
	name      string
	version   string
	file      File
	program   Program
	def       *Definition
	newArgs   func() any
	trial     *trial // nil: it has no tests
	dir       string // absolute, the folder of scripts; "" without
	outside   Outside
	modules   []*Module                   // the standard library
	recompile func(File) (*script, error) // the same component from another text
	tested    bool                        // there is a test file; the trial also runs examples
}

// testsFirst reports whether a version takes over only if its tests pass.
func (s *script) testsFirst(b ScriptBlock) bool {
	return s.trial != nil && (b.OnReload == OnReloadTest || b.OnReload == "" && s.tested)
}

// register makes the registration of a script. replaced says that one of the
// same name ships with weir. Its Err joins what is wrong with the script's
// constant expressions.
func register(s *script, h Header, replaced bool) component.Registration {
	_, s.newArgs = argsType(s.def)
	zero := scriptArgs(s.def, s.newArgs())
	if err := checkExprs(s.program, s.exprArgs(zero.values)); err != nil {
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
			return newComponent(s, o, args, previous)
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
func (s *script) origin() string {
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

// exprArgs are the arguments that expressions see.
func (s *script) exprArgs(args map[string]any) map[string]any { return exprValues(s.def.Args, args) }

// hostDocs are the manual of what every scripted block has.
var hostDocs = withDocs(withDocs(allowDocs, listenDocs), map[string]string{
	"forward_to":                 "Receivers of what the script leaves.",
	"interval":                   "How often poll is called. The first time is at once.",
	"script":                     "The host's side of the block.",
	"script.concurrency":         `How calls may overlap: "ordered" runs batches of several sources side by side on several VMs; "parallel" also splits batches of 4,000 records and more, and the hook sees parts; "single" runs one call at a time on one VM; "partition" splits batches by the labels in by, and the same values meet the same VM in every batch, one call at a time. The order of a series is kept in all of them.`,
	"script.by":                  `Labels by whose values "partition" chooses the VM; __name__ is the metric name. Others: none.`,
	"script.on_error":            `What becomes of data whose hook failed: "pass" sends it on unchanged, "drop" drops and counts it, "quarantine" stores it on disk for 'weir quarantine', "hold" does not accept it until the script works. A batch that the hook fails on as a whole goes through it in parts, to find the records that it cannot process: they alone are what on_error says, in quarantine with "hold", which holds when the script fails on all records, or when a request or program of its own fails. With other than "hold", a hook that uses the outside is not called twice, so that its error costs the batch. By default what the script says, or "pass"; what a source makes before an error is always dropped; a sink has "hold" by default, which is to send the batch, or the parts of it that fail, again until it works, and no "pass". What a hook has done in ctx.state and ctx.metrics before it failed stays.`,
	"script.quarantine":          `What on_error = "quarantine" and "hold" may store. The oldest falls off and is counted.`,
	"script.quarantine.max_size": "How much is kept on disk.",
	"script.quarantine.max_age":  "How long it is kept.",
	"script.on_reload":           `How a changed script takes over, at the start of weir and after a save. "swap": at once. "test": when the tests in the file <name>_test next to the script and the examples in its header pass; until then, the last version that passed runs. The default is "test" if there is such a file.`,
	"script.limits":              "What one call may use.",
	"script.limits.time":         "How long the hooks of one batch may run, plus 20µs for each record.",
	"script.limits.memory":       "How much a VM may hold of what the script can reach: tables, strings, functions. It is added up when the process has allocated as much, so a call may exceed it for a moment.",
	"script.limits.wait":         "How long a hook may wait for the outside each time: ctx.sleep, a request. The time limit stands still meanwhile.",
	"script.limits.state":        "How many bytes the entries of all of ctx.state may have together, in memory and on disk, each with its key, its value and 128 bytes. By default 256 MiB, as long as the state of all nodes has less than 1 GiB; a node with a limit of its own does not depend on others. An entry more is refused, or evicts those before it, and weir_script_state_entries_refused_total or …_evicted_total counts it.",
	"script.limits.emit":         "How many records one call may emit. By default ten for each record of the batch, plus 10,000; of a source 100,000.",
	"script.limits.output":       "How many bytes of lines, labels and metadata one call may set and emit, whether or not they are set again later, plus 4 KiB for each record of the batch and what its lines have. One line counts for each record that it is set to.",
})

func (s *script) doc(h Header, replaced bool) component.Doc {
	d := component.Doc{Summary: h.Summary, Args: map[string]string{}, Exports: map[string]string{}}
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
	for k, v := range hostDocs {
		d.Args[k] = v
	}
	if s.def.Kind == Sink {
		maps.Copy(d.Args, sinkDocs)
	}
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
func (s *script) hostExample() (text string) {
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
