package scripttest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/component"
)

// maxRecord limits a record that is shown, in bytes.
const maxRecord = 500

// Trial writes the result of a trial, with at most limit records of each kind.
func (p Pretty) Trial(tr *Trial, limit int) {
	line := func(code, text string) { fmt.Fprintln(p.W, p.paint(code, p.clean(text))) }
	switch {
	case tr.Outcome != "":
		line("1", fmt.Sprintf("%s: %s from %s: %s", tr.Name, count(tr.In, "record"), tr.Input, tr.Outcome))
	case tr.Input == "":
		line("1", fmt.Sprintf("%s: emitted %s", tr.Name, count(tr.Out, "record")))
	default:
		line("1", fmt.Sprintf("%s: %s from %s: %d unchanged, %d changed, %d dropped, %d added",
			tr.Name, count(tr.In, "record"), tr.Input, tr.Kept, len(tr.Changed), len(tr.Dropped), len(tr.Added)))
	}
	for i, c := range tr.Changed {
		if p.rest(i, len(tr.Changed), limit, "changed") {
			break
		}
		line("33", "~ "+shortRecord(c.Before))
		for _, f := range c.Fields {
			p.fieldChange(f)
		}
	}
	for i, text := range tr.Dropped {
		if p.rest(i, len(tr.Dropped), limit, "dropped") {
			break
		}
		line("31", "- "+shortRecord(text))
	}
	for i, text := range tr.Added {
		if p.rest(i, len(tr.Added), limit, "added") {
			break
		}
		line("32", "+ "+shortRecord(text))
	}
	for _, text := range tr.Exports {
		line("32", "export "+shortRecord(text))
	}
	for i, text := range tr.Outside {
		if i == 0 {
			line("1", map[bool]string{true: "not sent, but answered with status 200; --allow sends it:", false: "not done; --allow permits it:"}[tr.Outcome != ""])
		}
		for l := range strings.Lines(text) {
			fmt.Fprintf(p.W, "  %s\n", p.clean(strings.TrimSuffix(l, "\n")))
		}
	}
	for i, text := range tr.Printed {
		if i == 0 {
			line("1", "printed:")
		}
		fmt.Fprintf(p.W, "  %s\n", p.clean(text))
	}
}

// rest writes how many records of a kind are not shown, once limit were.
func (p Pretty) rest(i, total, limit int, kind string) bool {
	if i == limit {
		fmt.Fprintf(p.W, "  … and %d more %s; --limit shows them\n", total-i, kind)
	}
	return i == limit
}

func (p Pretty) fieldChange(f FieldChange) {
	show := func(v string) string {
		if f.Name == "value" {
			return v
		}
		return strconv.Quote(shortRecord(v))
	}
	switch {
	case f.Before == "" && f.Name != "line":
		fmt.Fprintf(p.W, "    %s %s\n", p.clean(f.Name)+":", p.paint("32", "+ "+p.clean(show(f.After))))
	case f.After == "" && f.Name != "line":
		fmt.Fprintf(p.W, "    %s %s\n", p.clean(f.Name)+":", p.paint("31", "- "+p.clean(show(f.Before))))
	default:
		fmt.Fprintf(p.W, "    %s %s → %s\n", p.clean(f.Name)+":", p.paint("31", p.clean(show(f.Before))), p.paint("32", p.clean(show(f.After))))
	}
}

func shortRecord(text string) string {
	if len(text) <= maxRecord {
		return text
	}
	return strings.ToValidUTF8(text[:maxRecord], "") + "…"
}

// shownErrors is how many errors of a trial are shown.
const shownErrors = 3

// TrialErrors writes the errors of the hooks.
func (p Pretty) TrialErrors(tr *Trial) {
	for i, e := range tr.Errors {
		if i == shownErrors {
			fmt.Fprintf(p.W, "… and %d more errors\n", len(tr.Errors)-i)
			return
		}
		for l := range strings.Lines(component.Shorten(e.Error())) {
			fmt.Fprintln(p.W, p.clean(strings.TrimSuffix(l, "\n")))
		}
	}
}
