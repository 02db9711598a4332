package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// writeAllManuals prints the manuals of all components as one Markdown page.
func writeAllManuals(w io.Writer, catalogs []component.Catalog) error {
	var list, manuals strings.Builder
	for _, c := range catalogs {
		for _, name := range c.Names() {
			r, ok := c.Lookup(name)
			if !ok || r.Err != nil {
				continue
			}
			fmt.Fprintf(&list, "- [%s](#%s): %s\n", name, strings.ReplaceAll(name, ".", ""), escapeMarkdown(firstSentence(r.Doc.Summary)))
			manuals.WriteString("\n" + markdownManual(r))
		}
	}
	_, err := fmt.Fprintf(w, "# Components\n\nAll components that ship with weir, and the blocks that create and import components or configure weir itself.\n\n%s%s", &list, &manuals)
	return err
}

// markdownManual returns the manual of a component as a section of Markdown.
func markdownManual(r component.Registration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n", r.Name, markdownSummary(config.Printable(strings.TrimSpace(r.Doc.Summary))))
	if r.Accepts != 0 {
		fmt.Fprintf(&b, "\nIt takes %s through its export `receiver`.\n", r.Accepts)
	}
	if r.Unique {
		b.WriteString("\nA config may contain one block of this component, without a label.\n")
	}
	if r.NewArgs != nil {
		markdownFields(&b, "Arguments", config.Describe(r.NewArgs()), r.Doc.Args, true)
	}
	markdownFields(&b, "Exports", config.Describe(r.Exports), r.Doc.Exports, false)
	if r.Doc.Example != "" {
		fmt.Fprintf(&b, "\n```alloy\n%s\n```\n", strings.Trim(exampleOf(r), "\n"))
	}
	return b.String()
}

func markdownFields(b *strings.Builder, title string, fields []config.Field, docs map[string]string, required bool) {
	if len(fields) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", title)
	for _, f := range fields {
		kind := f.Type
		switch {
		case f.Block && f.Labeled:
			kind = "block with a label"
		case f.Block:
			kind = "block"
		}
		switch {
		case f.Required && required:
			kind += ", required"
		case f.Default != "":
			kind += ", default `" + f.Default + "`"
		}
		if f.Repeated {
			kind += ", may be repeated"
		}
		fmt.Fprintf(b, "- `%s` (%s)", f.Path, kind)
		if doc := strings.TrimSpace(docs[f.Path]); doc != "" {
			b.WriteString(": " + indent(escapeMarkdown(config.Printable(doc)), "  ")[2:])
		}
		b.WriteByte('\n')
	}
}

// markdownSummary returns a summary with its indented lines as code.
func markdownSummary(s string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(s) {
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		switch {
		case indented && !code:
			b.WriteString("\n```text\n")
		case code && !indented && strings.TrimSpace(line) != "":
			b.WriteString("```\n\n")
		}
		if strings.TrimSpace(line) != "" {
			code = indented
		}
		if !code {
			line = escapeMarkdown(line)
		}
		b.WriteString(line)
	}
	if code {
		b.WriteString("\n```")
	}
	return b.String()
}

// escapeMarkdown escapes the characters that have a meaning in Markdown. Text in
// backquotes is not changed.
func escapeMarkdown(s string) string {
	parts := strings.Split(s, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`).Replace(parts[i])
	}
	return strings.Join(parts, "`")
}
