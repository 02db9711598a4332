package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// methods are the methods of a path in the order of the page.
var methods = []string{"get", "post", "put", "delete"}

// WriteMarkdown writes what a document describes as a page of the documentation.
func WriteMarkdown(w io.Writer, text []byte) error {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("cannot read the document: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n## Routes\n", d.Info.Title, d.Info.Description)
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, m := range methods {
			if op := d.Paths[path][m]; op != nil {
				op.write(&b, strings.ToUpper(m)+" "+path)
			}
		}
	}
	b.WriteString("\n## Types\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if s.Description != "" {
			fmt.Fprintf(&b, "%s\n\n", line(s.Description))
		}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			f := s.Properties[field]
			fmt.Fprintf(&b, "- `%s`: %s", field, f.text())
			if !slices.Contains(s.Required, field) {
				b.WriteString(", optional")
			}
			if f.Description != "" {
				fmt.Fprintf(&b, ". %s", line(f.Description))
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (op *operation) write(b *strings.Builder, heading string) {
	fmt.Fprintf(b, "\n### %s\n\n%s", heading, op.Summary)
	switch {
	case len(op.Security) > 0 && len(op.Security[0]) == 0:
		b.WriteString(" Callers with credentials get more.")
	case len(op.Security) > 0:
		b.WriteString(" It needs credentials.")
	}
	b.WriteString("\n\n")
	if op.Description != "" {
		fmt.Fprintf(b, "%s\n\n", op.Description)
	}
	for _, p := range op.Parameters {
		of := p.Schema.text()
		if p.In == "path" {
			of = "in the path"
		}
		fmt.Fprintf(b, "- `%s` (%s)", p.Name, of)
		if p.Description != "" {
			fmt.Fprintf(b, ": %s", line(p.Description))
		}
		b.WriteString("\n")
	}
	if op.RequestBody != nil {
		fmt.Fprintf(b, "- the body is %s\n", op.RequestBody.Content[JSON].Schema.text())
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if r.Ref != "" {
			continue // the section about access describes them
		}
		fmt.Fprintf(b, "- status %s: %s", status, line(r.Description))
		for _, t := range slices.Sorted(maps.Keys(r.Content)) {
			switch m := r.Content[t]; {
			case m.Line != nil:
				fmt.Fprintf(b, " `%s`: each line is %s.", t, m.Line.text())
			case m.Events != nil:
				fmt.Fprintf(b, " `%s`:\n", t)
				for _, name := range slices.Sorted(maps.Keys(m.Events)) {
					fmt.Fprintf(b, "  - `%s`: %s. %s\n", name, m.Events[name].text(), line(m.Events[name].Description))
				}
				continue
			case t == JSON && m.Schema.text() != "":
				fmt.Fprintf(b, " `%s`: %s.", t, m.Schema.text())
			default:
				fmt.Fprintf(b, " `%s`.", t)
			}
		}
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("\n")
		}
	}
}

// text is a schema in a few words.
func (s *schema) text() string {
	switch {
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, schemaPath)
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case len(s.AnyOf) == 2:
		return s.AnyOf[0].text() + " or " + s.AnyOf[1].text()
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Format == "date-time":
		return "time"
	}
	name, _ := s.Type.(string)
	list, _ := s.Type.([]any) // of a document that was read
	switch {
	case len(list) == 2:
		inner := *s
		inner.Type = list[0]
		return inner.text() + " or null"
	case name == "array":
		return "list of " + s.Items.text()
	case name == "object" && s.AdditionalProperties != nil:
		return "object of " + s.AdditionalProperties.text()
	case name == "":
		return "any JSON"
	}
	return name
}

// line returns a comment as one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
