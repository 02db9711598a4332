package scan

import (
	"strings"
	"unicode/utf8"
)

// Marks are the properties of a pair in logfmt text.
type Marks uint8

// The marks.
const (
	Quoted  Marks = 1 << iota // the value is in quotes
	Escaped                   // the value has escapes, which are not resolved
	Open                      // the value begins with a quote without a closing quote
	Stray                     // a quote in the key, or a quote or an equals sign in an unquoted value
	foreign                   // the key is not ASCII
	equals                    // of a byte: an equals sign
	blank                     // of a byte: space
)

// classes are the marks of bytes.
var classes = func() (c [256]Marks) {
	for i := range c {
		switch {
		case i <= ' ':
			c[i] = blank
		case i == '=':
			c[i] = equals
		case i == '"':
			c[i] = Stray
		case i >= utf8.RuneSelf:
			c[i] = foreign
		}
	}
	return c
}()

// NextPair returns the first pair of logfmt text from byte i on: key=value,
// key="quoted value", or just a key, which has an empty value. The key begins
// at byte at; search for the next pair from byte end on. After the last pair,
// at is len(s). It accepts any text; callers decide which marks are errors.
func NextPair(s string, i int) (key, value string, marks Marks, at, end int) {
	for i < len(s) && s[i] <= ' ' {
		i++
	}
	at = i
	for i < len(s) {
		c := classes[s[i]]
		if c&(blank|equals) != 0 {
			break
		}
		marks |= c
		i++
	}
	key = s[at:i]
	if i == len(s) || s[i] != '=' {
		return key, "", marks, at, i
	}
	i++
	if i < len(s) && s[i] == '"' {
		from := i + 1
		end, escaped := stringEnd(s, from)
		if end < 0 {
			return key, "", marks | Quoted | Open, at, len(s)
		}
		if escaped {
			marks |= Escaped
		}
		return key, s[from:end], marks | Quoted, at, end + 1
	}
	from, seen := i, Marks(0)
	for i < len(s) {
		c := classes[s[i]]
		if c&blank != 0 {
			break
		}
		seen |= c
		i++
	}
	if seen&(equals|Stray) != 0 {
		marks |= Stray
	}
	return key, s[from:i], marks, at, i
}

// Logfmt searches for keys in a logfmt line. It stops when all are found. If a
// key occurs twice, the first one counts.
type Logfmt struct {
	keys  []string
	slots []int
}

// Add adds a key. Find stores its value in the given slot.
func (l *Logfmt) Add(key string, slot int) {
	l.keys, l.slots = append(l.keys, key), append(l.slots, slot)
}

// Len returns the number of keys.
func (l *Logfmt) Len() int { return len(l.keys) }

// Find searches s and stores the values in out, whose slots must be zero.
func (l *Logfmt) Find(s string, out []Value) {
	left := len(l.keys)
	for i := 0; left > 0; {
		key, value, marks, at, end := NextPair(s, i)
		if at == len(s) || marks&Open != 0 {
			return
		}
		i = end
		for k, want := range l.keys {
			if want == key && out[l.slots[k]].Kind == Missing {
				if marks&Escaped != 0 {
					value = unquoteJSON(value)
				}
				out[l.slots[k]] = Value{Kind: Text, Text: value}
				left--
				break
			}
		}
	}
}

// IsLogfmtKey reports whether a key is valid in a logfmt line.
func IsLogfmtKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '=' || r == '"' })
}

// Pairs calls f with each key and value of logfmt text, which may have several
// lines, up to the first error, and reports whether there was none: a misplaced
// quote or equals sign, or an unterminated string. It is as strict as decoders;
// Logfmt is not.
//
// Format: https://pkg.go.dev/github.com/go-logfmt/logfmt
func Pairs(s string, f func(key, value string)) bool {
	for i := 0; ; {
		key, value, marks, at, end := NextPair(s, i)
		if at == len(s) {
			return true
		}
		if key == "" || marks&(Open|Stray) != 0 || marks&foreign != 0 && strings.ContainsRune(key, utf8.RuneError) {
			return false
		}
		if marks&Quoted != 0 {
			var ok bool
			if value, ok = unquoteLogfmt(value, marks); !ok {
				return false
			}
		}
		f(key, value)
		i = end
	}
}

// unquoteLogfmt returns the text of a quoted value; ok is false if it contains
// an invalid escape or character.
func unquoteLogfmt(s string, marks Marks) (value string, ok bool) {
	if strings.IndexByte(s, '\n') >= 0 { // a string must end in the same line
		return "", false
	}
	if marks&Escaped == 0 {
		return s, true
	}
	s = apostrophes(s)
	if !validEscapes(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return "", false
	}
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // U+FFFD for each byte that is not UTF-8
	}
	return unquoteJSON(s), true
}

// apostrophes removes the backslashes before apostrophes, which only logfmt has.
func apostrophes(s string) string {
	if !strings.Contains(s, `\'`) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] != '\'' {
				b = append(b, '\\')
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
