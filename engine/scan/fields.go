package scan

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the type of a Value.
type Kind uint8

// The kinds. A JSON null is Missing.
const (
	Missing Kind = iota
	Text
	Number
	Bool
	Raw // an object or a list, as JSON
)

// Value is the value of a field in a line. Its text is a part of the line,
// unless it contained escapes.
type Value struct {
	Kind Kind
	Text string  // of a number as written; "true", "false"
	Num  float64 // of a Number
}

// MaxPath is the maximum number of names in a path into JSON.
const MaxPath = 16

// Path is a path into JSON: names of members, indexes of lists.
type Path []string

// CutPath splits "a.b.0" at its dots. A dot after a backslash is part of a
// name. ok is false for a path with more than MaxPath names.
func CutPath(s string) (path Path, ok bool) {
	var name []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			name = append(name, s[i])
		case s[i] == '.':
			if path = append(path, string(name)); len(path) == MaxPath {
				return path, false
			}
			name = name[:0]
		default:
			name = append(name, s[i])
		}
	}
	return append(path, string(name)), true
}

// Fields searches for paths in JSON text. It scans the text once, until all
// paths are found, and builds only requested values. It does not check whether
// the text is valid JSON: paths that are not found are missing. If a name
// occurs twice, the first one counts.
type Fields struct {
	names []jsonName // at the top level
	n     int        // number of paths
}

// jsonName is a name in one or more paths.
type jsonName struct {
	name  string
	index int // of the element if the name is in a list, or -1
	slot  int // of the path that ends here, or -1
	below *Fields
}

// Add adds a path. Find stores its value in the given slot.
func (j *Fields) Add(path Path, slot int) {
	j.n++
	i := 0
	for i < len(j.names) && j.names[i].name != path[0] {
		i++
	}
	if i == len(j.names) {
		index, err := strconv.Atoi(path[0])
		if err != nil {
			index = -1
		}
		j.names = append(j.names, jsonName{name: path[0], index: index, slot: -1})
	}
	at := &j.names[i]
	if len(path) > 1 {
		if at.below == nil {
			at.below = &Fields{}
		}
		at.below.Add(path[1:], slot)
		return
	}
	at.slot = slot
}

// Len returns the number of paths.
func (j *Fields) Len() int { return j.n }

// Find searches the object or list at the beginning of s and stores the values
// in out, whose slots must be zero.
func (j *Fields) Find(s string, out []Value) {
	j.scan(s, skipSpace(s, 0), out, 0)
}

// maxJSONDepth is the depth up to which paths are followed. Other values are
// skipped whatever their depth.
const maxJSONDepth = MaxPath

// scan scans the object or list at i, and returns its end. It returns -1 if it
// stopped, because all paths were found or the text is not JSON.
func (j *Fields) scan(s string, i int, out []Value, depth int) int {
	if i >= len(s) || depth > maxJSONDepth {
		return -1
	}
	switch s[i] {
	case '{':
		return j.object(s, i+1, out, depth)
	case '[':
		return j.list(s, i+1, out, depth)
	}
	return -1
}

func (j *Fields) object(s string, i int, out []Value, depth int) int {
	seen := uint64(0) // names that were found
	left := len(j.names)
	for {
		if i = skipSpace(s, i); i >= len(s) {
			return -1
		}
		if s[i] == '}' {
			return i + 1
		}
		if s[i] == ',' {
			i = skipSpace(s, i+1)
		}
		if i >= len(s) || s[i] != '"' {
			return -1
		}
		from := i + 1
		end, escaped := stringEnd(s, from)
		if end < 0 {
			return -1
		}
		key := s[from:end]
		if escaped {
			key = unquoteJSON(key)
		}
		if i = skipSpace(s, end+1); i >= len(s) || s[i] != ':' {
			return -1
		}
		i = skipSpace(s, i+1)
		at := -1
		for k := range j.names {
			if j.names[k].name == key && seen&(1<<k) == 0 {
				at = k
				break
			}
		}
		if at < 0 {
			if i = skipValue(s, i); i < 0 {
				return -1
			}
			continue
		}
		seen |= 1 << at
		left--
		if i = j.value(&j.names[at], s, i, out, depth, left == 0 && depth == 0); i < 0 {
			return -1
		}
	}
}

func (j *Fields) list(s string, i int, out []Value, depth int) int {
	for n := 0; ; n++ {
		if i = skipSpace(s, i); i >= len(s) {
			return -1
		}
		if s[i] == ']' {
			return i + 1
		}
		if n > 0 {
			if s[i] != ',' {
				return -1
			}
			i = skipSpace(s, i+1)
		}
		at := -1
		for k := range j.names {
			if j.names[k].index == n {
				at = k
				break
			}
		}
		if at < 0 {
			if i = skipValue(s, i); i < 0 {
				return -1
			}
			continue
		}
		if i = j.value(&j.names[at], s, i, out, depth, false); i < 0 {
			return -1
		}
	}
}

// value reads the value at i for a name and returns its end. It returns -1 if
// there is no value, or if it was the last one requested.
func (j *Fields) value(at *jsonName, s string, i int, out []Value, depth int, last bool) int {
	from := i
	if at.below != nil {
		if i < len(s) && (s[i] == '{' || s[i] == '[') {
			end := at.below.scan(s, i, out, depth+1)
			if last && at.slot < 0 {
				return -1
			}
			if end < 0 { // it may have stopped early
				end = skipValue(s, from)
			}
			i = end
		} else {
			i = skipValue(s, i)
		}
	} else if i < len(s) && s[i] == '"' { // by far the most frequent
		end, escaped := stringEnd(s, i+1)
		if end < 0 {
			return -1
		}
		v := &out[at.slot]
		if v.Kind, v.Text = Text, s[i+1:end]; escaped {
			v.Text = unquoteJSON(v.Text)
		}
		if last {
			return -1
		}
		return end + 1
	} else {
		i = skipValue(s, i)
	}
	if i < 0 {
		return -1
	}
	if at.slot >= 0 {
		out[at.slot] = jsonValue(s[from:i])
	}
	if last {
		return -1
	}
	return i
}

// jsonValue parses a single value.
func jsonValue(s string) Value {
	switch s[0] {
	case '"':
		return Value{Kind: Text, Text: unquoteJSON(s[1 : len(s)-1])}
	case '{', '[':
		return Value{Kind: Raw, Text: s}
	case 't', 'f':
		if s == "true" || s == "false" {
			return Value{Kind: Bool, Text: s}
		}
	default:
		if f, ok := parseNumber(s); ok {
			return Value{Kind: Number, Text: s, Num: f}
		}
	}
	return Value{}
}

// parseNumber parses a JSON number. A number that a float64 cannot represent is
// infinite or rounded; to pass it on exactly, use its text.
func parseNumber(s string) (float64, bool) {
	i, n := 0, 0
	if s[0] == '-' {
		i++
	}
	first := i
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		n = n*10 + int(s[i]-'0')
	}
	if i == first || s[first] == '0' && i > first+1 {
		return 0, false
	}
	if i == len(s) && i-first <= 15 {
		if first == 1 {
			if n == 0 {
				return math.Copysign(0, -1), true
			}
			n = -n
		}
		return float64(n), true
	}
	if i < len(s) && s[i] == '.' {
		at := i + 1
		for i = at; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		}
		if i == at {
			return 0, false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		at := i
		for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		}
		if i == at {
			return 0, false
		}
	}
	if i < len(s) {
		return 0, false
	}
	f, _ := strconv.ParseFloat(s, 64) // an error means that it is out of range
	return f, true
}

// Exact reports whether a Number equals its text; most integers beyond 2^53 do
// not.
func (v Value) Exact() bool {
	if len(v.Text) <= 15 || strings.ContainsAny(v.Text, ".eE") {
		return true
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	return err == nil && int64(v.Num) == n && v.Num < 1<<63
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the position of the quote that ends a string whose text
// begins at i, or -1, and whether the text has escapes.
func stringEnd(s string, i int) (end int, escaped bool) {
	from := i
	for {
		k := strings.IndexByte(s[i:], '"')
		if k < 0 {
			return -1, false
		}
		i += k
		back := i
		for back > from && s[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i, escaped || strings.IndexByte(s[from:i], '\\') >= 0
		}
		escaped = true
		i++
	}
}

// skipValue returns the end of the value at i, or -1 if there is none.
func skipValue(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch s[i] {
	case '"':
		end, _ := stringEnd(s, i+1)
		if end < 0 {
			return -1
		}
		return end + 1
	case '{', '[':
		for depth := 0; i < len(s); i++ {
			switch s[i] {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			case '"':
				if i, _ = stringEnd(s, i+1); i < 0 {
					return -1
				}
			}
		}
		return -1
	}
	from := i
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' && s[i] > ' ' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// unquoteJSON resolves the escapes of JSON. Invalid escapes stay unchanged;
// half of a surrogate pair becomes U+FFFD.
func unquoteJSON(s string) string {
	at := strings.IndexByte(s, '\\')
	if at < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:at]...)
	for i := at; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, ok := hex4(s, i+1)
			if !ok {
				b = append(b, '\\', c)
				continue
			}
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), strings.HasPrefix(s[i+1:], `\u`)
				if ok {
					low, ok = hex4(s, i+3)
				}
				if full := utf16.DecodeRune(r, low); ok && full != utf8.RuneError {
					r = full
					i += 6
				} else {
					r = utf8.RuneError
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, '\\', c)
		}
	}
	return string(b)
}

func hex4(s string, i int) (rune, bool) {
	if i+4 > len(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[i:i+4], 16, 32)
	return rune(n), err == nil
}
