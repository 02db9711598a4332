package flowchart

// maxText is the most runes of a line of a drawing.
const maxText = 44

// lines returns the lines of a node, one or two.
func (n *GraphNode) lines() []string {
	if n.Label == "" {
		return []string{cut(n.Name)}
	}
	return []string{cut(n.Name), cut(n.Label)}
}

// cut shortens a text in its middle.
func cut(s string) string {
	r := []rune(s)
	if len(r) <= maxText {
		return s
	}
	return string(r[:maxText/2]) + "…" + string(r[len(r)-maxText/2+1:])
}
