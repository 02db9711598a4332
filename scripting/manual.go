package scripting

import (
	"fmt"
	"strings"
)

// Manual returns the manual of a module for `weir help`. It is generated from
// the table that languages bind.
func (m *Module) Manual() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. %s\n", m.Name, WrapManual(m.Doc, 0, len(m.Name)+2))
	for _, c := range m.Consts {
		WriteManual(&b, m.Name+"."+c.Name, c.Doc)
	}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		WriteManual(&b, m.Name+"."+f.Name+f.Signature(), f.Doc)
	}
	for _, t := range m.Types {
		fmt.Fprintf(&b, "  A %s. %s\n", t.Name, WrapManual(t.Doc, 2, 2+2+len(t.Name)+2))
		for i := range t.Methods {
			f := &t.Methods[i]
			WriteManual(&b, ":"+f.Name+f.Signature(), f.Doc)
		}
	}
	return b.String()
}

// Signature returns the parameters in parentheses. Optional parameters end in
// ?.
func (f *Function) Signature() string {
	var names []string
	for _, p := range f.Params {
		n := p.Name
		if p.Optional && p.Kind != KindAny {
			n += "?"
		}
		if p.Rest {
			n = strings.TrimSuffix(n, "…") + "…"
		}
		names = append(names, n)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// WriteManual writes an entry of a manual: the subject, and the text below it.
func WriteManual(b *strings.Builder, head, doc string) {
	fmt.Fprintf(b, "  %s\n      %s\n", head, WrapManual(doc, 6, 6))
}

// WrapManual wraps text at 80 columns. Lines after the first are indented. The
// first line starts at the given column.
func WrapManual(text string, indent, column int) string {
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
