package scripting

import "strings"

// CamelCase is how JavaScript calls what is declared in snake_case: drop_where
// is dropWhere. Other names stay as they are.
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

// SnakeCase is the name that CamelCase made name of: dropWhere is drop_where.
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
