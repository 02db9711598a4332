package scripttest

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// Manual is what a test file may call, from the tables that are bound.
func Manual() string {
	s := &session{ctx: context.Background(), top: &group{}} // nothing is run
	api := s.api()
	var b strings.Builder
	line := func(prefix string, f *scripting.Function) {
		entry(&b, prefix+f.Name+signature(f), f.Doc)
	}
	b.WriteString("In a test file there are\n")
	for i := range api.Globals {
		line("", &api.Globals[i])
	}
	for i := range api.Weir.Funcs {
		line(api.Weir.Name+".", &api.Weir.Funcs[i])
	}
	for _, t := range api.Weir.Types {
		fmt.Fprintf(&b, "\nA %s. %s\n", t.Name, wrap(t.Doc, 0, 2+len(t.Name)+2))
		for i := range t.Methods {
			line(":", &t.Methods[i])
		}
	}
	b.WriteString("\nAssertions, assert.same and so on, also with is_, is_not_, has_, has_no_ before\ntheir name; a last argument is the message:\n")
	for _, a := range assertions {
		entry(&b, a.name+signature(&scripting.Function{Params: a.params}), a.doc)
	}
	for _, m := range api.Tables {
		fmt.Fprintf(&b, "\n%s. %s\n", strings.ToUpper(m.Name[:1])+m.Name[1:], m.Doc)
		for _, c := range m.Consts {
			entry(&b, m.Name+"."+c.Name, c.Doc)
		}
	}
	return b.String()
}

func signature(f *scripting.Function) string {
	var names []string
	for _, p := range f.Params {
		n := p.Name
		if p.Optional && p.Kind != scripting.KindAny {
			n += "?"
		}
		names = append(names, n)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

func entry(b *strings.Builder, head, doc string) {
	fmt.Fprintf(b, "  %s\n      %s\n", head, wrap(doc, 6, 6))
}

// wrap breaks text at 80 columns; lines after the first are indented, and the
// first begins at a column.
func wrap(text string, indent, column int) string {
	var b strings.Builder
	for i, w := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(w) > 80:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += len(w)
	}
	return b.String()
}
