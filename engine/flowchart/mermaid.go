package flowchart

import (
	"fmt"
	"io"
	"strings"
)

// WriteMermaid writes the graph in the language of Mermaid, which Markdown on GitHub and
// GitLab shows as a drawing.
//
// Format: https://mermaid.js.org/syntax/flowchart.html
func (g *Graph) WriteMermaid(w io.Writer) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	names := map[string]string{}
	name := func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("n%d", len(names)+1)
		}
		return names[id]
	}
	var write func(group, indent string)
	write = func(group, indent string) {
		for _, n := range g.Nodes {
			if n.Group != group {
				continue
			}
			lines := n.lines()
			for i := range lines {
				lines[i] = mermaidText(lines[i])
			}
			fmt.Fprintf(&b, "%s%s[\"%s\"]\n", indent, name(n.ID), strings.Join(lines, "<br>"))
		}
		for _, o := range g.Groups {
			if o.Group == group {
				fmt.Fprintf(&b, "%ssubgraph %s[\"%s\"]\n", indent, name(o.ID), mermaidText(o.Label))
				write(o.ID, indent+"  ")
				fmt.Fprintf(&b, "%send\n", indent)
			}
		}
	}
	write("", "  ")
	for _, e := range g.Edges {
		if strings.HasPrefix(e.To, e.From+"/") || strings.HasPrefix(e.From, e.To+"/") {
			continue // Mermaid cannot draw an edge between a group and its content
		}
		arrow := "-->"
		if e.Reference {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", name(e.From), arrow, name(e.To))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mermaidText returns a text as a part of a quoted label. Mermaid writes characters with a meaning as #code;.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\"#&<>`\\", r) || r < ' ' {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
