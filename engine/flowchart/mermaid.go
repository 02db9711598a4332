package flowchart

import (
	"fmt"
	"io"
	"strings"
)

// WriteMermaid writes the chart in the language of Mermaid, which Markdown on GitHub and
// GitLab shows as a drawing.
//
// Format: https://mermaid.js.org/syntax/flowchart.html
func (c *Chart) WriteMermaid(w io.Writer) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	children, nodes, names := map[string][]string{}, map[string]*Node{}, map[string]string{}
	seen := map[string]bool{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		nodes[n.ID] = n
		for id := n.ID; id != "" && !seen[id]; id = parent(id) {
			seen[id] = true
			names[id] = fmt.Sprintf("n%d", len(names)+1)
			children[parent(id)] = append(children[parent(id)], id)
		}
	}
	var write func(frame, indent string)
	write = func(frame, indent string) {
		for _, id := range children[frame] {
			if len(children[id]) > 0 {
				fmt.Fprintf(&b, "%ssubgraph %s[\"%s\"]\n", indent, names[id], mermaidText((&box{id: id}).title()))
				write(id, indent+"  ")
				fmt.Fprintf(&b, "%send\n", indent)
				continue
			}
			name, label := nodes[id].lines()
			if label = mermaidText(label); name != "" {
				label = mermaidText(name) + "<br>" + label
			}
			fmt.Fprintf(&b, "%s%s[\"%s\"]\n", indent, names[id], label)
		}
	}
	write("", "  ")
	for _, e := range c.Edges {
		if nodes[e.From] == nil || nodes[e.To] == nil || strings.HasPrefix(e.To, e.From+"/") || strings.HasPrefix(e.From, e.To+"/") {
			continue // Mermaid cannot draw an edge between a frame and its content
		}
		arrow := "-->"
		if e.Reference {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", names[e.From], arrow, names[e.To])
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
