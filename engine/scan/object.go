package scan

import (
	"math/bits"
	"strings"
)

// Step is a step of the path to a value: the element of a list if Index is not
// negative, or else the member of an object called Name.
type Step struct {
	Name  string
	Index int
}

// Object searches for values in a text that must be one JSON object, which it
// reads to the end. If a name occurs twice, the last one counts, as in
// decoders. The zero value searches for nothing. It is safe for concurrent use
// after the last call of Add.
type Object struct{ top place }

// place is a requested value, or leads to one.
type place struct {
	Step
	slots []int // slots for its value
	below []*place
}

// Add adds the path to a value. Find stores the value in the given slot.
func (o *Object) Add(way []Step, slot int) {
	at := &o.top
	for _, s := range way {
		at = at.step(s)
	}
	at.slots = append(at.slots, slot)
}

func (p *place) step(s Step) *place {
	for _, b := range p.below {
		if b.Step == s {
			return b
		}
	}
	b := &place{Step: s}
	p.below = append(p.below, b)
	return b
}

// Find reports whether s is one JSON object, or null, and stores the values in
// out, whose slots must be zero. Values that are missing or null stay Missing.
// The text of a Raw value is unchanged. If s is not an object, out must not be
// used.
func (o *Object) Find(s string, out []Value) bool {
	i := skipSpace(s, 0)
	if i >= len(s) {
		return false
	}
	switch {
	case s[i] == '{':
		i = o.top.value(s, i, out, 0)
	case strings.HasPrefix(s[i:], "null"):
		i += len("null")
	default:
		return false
	}
	return i >= 0 && skipSpace(s, i) == len(s)
}

// maxObjectDepth is the maximum nesting of objects and lists, as in
// encoding/json.
const maxObjectDepth = 10_000

// value reads the value at i and returns its end, or -1 if there is no value. p
// is nil for a value that is not requested.
func (p *place) value(s string, i int, out []Value, depth int) int {
	if i >= len(s) || depth > maxObjectDepth {
		return -1
	}
	from := i
	v := Value{}
	switch s[i] {
	case '"':
		end, escaped := plainEnd(s, i+1)
		if end < 0 || escaped && !validEscapes(s[from+1:end]) {
			return -1
		}
		i = end + 1
		if p != nil && len(p.slots) > 0 {
			v = Value{Kind: Text, Text: s[from+1 : end]}
			if escaped {
				v.Text = unquoteJSON(v.Text)
			}
		}
	case '{':
		i = p.object(s, i+1, out, depth)
		v = Value{Kind: Raw}
	case '[':
		i = p.list(s, i+1, out, depth)
		v = Value{Kind: Raw}
	default:
		i = skipValue(s, i)
		if i < 0 {
			return -1
		}
		if text := s[from:i]; text != "null" {
			if v = jsonValue(text); v.Kind == Missing {
				return -1
			}
		}
	}
	if i < 0 || p == nil {
		return i
	}
	if v.Kind == Raw {
		v.Text = s[from:i]
	}
	for _, slot := range p.slots {
		out[slot] = v
	}
	return i
}

// clear clears the values at p and below.
func (p *place) clear(out []Value) {
	for _, slot := range p.slots {
		out[slot] = Value{}
	}
	for _, b := range p.below {
		b.clear(out)
	}
}

// object reads the members of an object. The first member begins at i.
func (p *place) object(s string, i int, out []Value, depth int) int {
	if i = skipSpace(s, i); i < len(s) && s[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(s) || s[i] != '"' {
			return -1
		}
		from := i + 1
		end, escaped := plainEnd(s, from)
		if end < 0 || escaped && !validEscapes(s[from:end]) {
			return -1
		}
		if i = end + 1; i >= len(s) || s[i] != ':' { // usually it follows immediately
			if i = skipSpace(s, i); i >= len(s) || s[i] != ':' {
				return -1
			}
		}
		i = skipSpace(s, i+1)
		at := p.member(s[from:end], escaped)
		if at != nil && len(at.below) > 0 {
			at.clear(out) // the name may occur for the second time
		}
		if i = at.value(s, i, out, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(s, i); i >= len(s) {
			return -1
		}
		switch s[i] {
		case '}':
			return i + 1
		case ',':
			i = skipSpace(s, i+1)
		default:
			return -1
		}
	}
}

// member returns the place of a member, or nil if it is not requested.
func (p *place) member(key string, escaped bool) *place {
	if p == nil || len(p.below) == 0 {
		return nil
	}
	if escaped {
		key = unquoteJSON(key)
	}
	for _, b := range p.below {
		if b.Index < 0 && b.Name == key {
			return b
		}
	}
	return nil
}

// list reads the elements of a list. The first element begins at i.
func (p *place) list(s string, i int, out []Value, depth int) int {
	if i = skipSpace(s, i); i < len(s) && s[i] == ']' {
		return i + 1
	}
	for n := 0; ; n++ {
		var at *place
		if p != nil {
			for _, b := range p.below {
				if b.Index == n {
					at = b
				}
			}
		}
		if i = at.value(s, i, out, depth+1); i < 0 {
			return -1
		}
		if i = skipSpace(s, i); i >= len(s) {
			return -1
		}
		switch s[i] {
		case ']':
			return i + 1
		case ',':
			i = skipSpace(s, i+1)
		default:
			return -1
		}
	}
}

// plainEnd is like stringEnd, for text without control characters: end is -1 if
// it contains one.
func plainEnd(s string, i int) (end int, escaped bool) {
	// Eight bytes at a time, as long as there are as many.
	for i+8 <= len(s) {
		m := special(uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56)
		if m == 0 {
			i += 8
			continue
		}
		switch i += bits.TrailingZeros64(m) / 8; s[i] {
		case '"':
			return i, escaped
		case '\\':
			escaped = true
			i += 2
		default:
			return -1, false
		}
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i, escaped
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return -1, false
		}
	}
	return -1, false
}

// special marks the first of eight bytes that is a quote, a backslash or a
// control character by its highest bit. It may also mark later bytes. It
// returns 0 if there is no such byte.
func special(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, back := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*' ')&^w | (quote-ones)&^quote | (back-ones)&^back) & tops
}

// validEscapes reports whether all escapes of a text are valid in JSON.
func validEscapes(s string) bool {
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			return true
		}
		if at+1 >= len(s) {
			return false
		}
		switch s[at+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s = s[at+2:]
		case 'u':
			if !isHex4(s, at+2) {
				return false
			}
			s = s[at+6:]
		default:
			return false
		}
	}
}

func isHex4(s string, i int) bool {
	if i+4 > len(s) {
		return false
	}
	for _, c := range []byte(s[i : i+4]) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// Members calls f with each member of s, which must be one JSON object, in
// order, and reports whether it is one. If it is not, the members passed to f
// must not be used. A value that is null is Missing.
func Members(s string, f func(name string, v Value)) bool {
	i := skipSpace(s, 0)
	if i >= len(s) || s[i] != '{' {
		return strings.HasPrefix(s[min(i, len(s)):], "null") && skipSpace(s, i+len("null")) == len(s)
	}
	if new(place).value(s, i, nil, 0) < 0 {
		return false
	}
	one := place{slots: []int{0}}
	var out [1]Value
	for i = skipSpace(s, i+1); s[i] == '"'; {
		from := i + 1
		end, escaped := plainEnd(s, from)
		name := s[from:end]
		if escaped {
			name = unquoteJSON(name)
		}
		i = skipSpace(s, skipSpace(s, end+1)+1)
		out[0] = Value{}
		i = skipSpace(s, one.value(s, i, out[:], 1))
		f(name, out[0])
		if s[i] == ',' {
			i = skipSpace(s, i+1)
		}
	}
	return skipSpace(s, i+1) == len(s)
}
