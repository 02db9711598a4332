package scripting

import "strings"

// CamelCase converts a snake_case name to its spelling in JavaScript:
// drop_where becomes dropWhere. Other names stay unchanged.
func CamelCase(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	out := make([]byte, 0, len(name))
	up := false
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' && i > 0 && i+1 < len(name):
			up = true
		case up && 'a' <= c && c <= 'z':
			out = append(out, c-'a'+'A')
			up = false
		default:
			out = append(out, c)
			up = false
		}
	}
	return string(out)
}

// SnakeCase reverses CamelCase: dropWhere becomes drop_where.
func SnakeCase(name string) string {
	out := make([]byte, 0, len(name)+4)
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' && i > 0 {
			out = append(out, '_', c-'A'+'a')
			continue
		}
		out = append(out, c)
	}
	return string(out)
}
