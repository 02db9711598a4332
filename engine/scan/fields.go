package scan

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is what a Value is.
type Kind uint8

// The kinds. A JSON null is Missing.
const (
	Missing Kind = iota
	Text
	Number
	Bool
	Raw // an object or a list, as JSON
)

// Value is what a field of a line holds. Its text is a part of the line where
// nothing had to be unescaped.
type Value struct {
	Kind Kind
	Text string  // of a number as it was written; "true", "false"
	Num  float64 // of a Number
}

// MaxPath is how many names a path into JSON may have.
const MaxPath = 16

// Path is a path into JSON: names of objects, numbers of lists.
type Path []string

// CutPath splits "a.b.0" at its dots; a backslash before one makes it a part of
// a name. ok is false of one with more than MaxPath names.
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

// Fields looks for some paths in JSON text. It goes over the text once, up to
// where all were found, builds nothing of what nobody asked for, and does not
// say whether the text is JSON: what cannot be found is missing. Of a name that
// appears twice, the first counts.
type Fields struct {
	names []jsonName // at the top
	n     int        // paths
}

// jsonName is a name that leads to paths.
type jsonName struct {
	name  string
	index int // that the name is in a list, -1 for none
	slot  int // of the path that ends here, -1 for none
	below *Fields
}

// Add adds a path, whose value goes to a slot of what Find fills.
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

// Len returns how many paths there are.
func (j *Fields) Len() int { return j.n }

// Find puts what it finds in the object or list that s begins with into out,
// whose slots must be zero before.
func (j *Fields) Find(s string, out []Value) {
	j.scan(s, skipSpace(s, 0), out, 0)
}

// maxJSONDepth is how deep a scan follows paths; what is beside them is skipped
// whatever its depth.
const maxJSONDepth = MaxPath

// scan goes through the object or list at i, and returns where it ends, -1 if
// it went no further: all was found, or it is no JSON.
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
	seen := uint64(0) // names that were met
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

// value reads the value at i for a name and returns where it ends; -1 if it is
// no value, or the last one that was asked for.
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
	} else if i < len(s) && s[i] == '"' { // the most frequent by far
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

// jsonValue reads a value that stands alone.
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

// parseNumber reads a JSON number. One that a float64 cannot hold is infinite or
// rounded: who passes it on takes its text.
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
	f, _ := strconv.ParseFloat(s, 64) // an error says that it is out of range
	return f, true
}

// Exact reports whether a Number is what its text says: an integer beyond 2^53
// mostly is not.
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

// stringEnd returns where the quote is that ends a string whose text begins at
// i, -1 for none, and whether the text has escapes.
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

// skipValue returns where the value at i ends, -1 if there is none.
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

// unquoteJSON undoes the escapes of JSON. What is no escape stays as it is; half
// of a surrogate pair becomes U+FFFD.
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
