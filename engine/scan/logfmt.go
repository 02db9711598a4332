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
	Escaped                   // the value has escapes, which are as written
	Open                      // the value begins with a quote that has no end
	Stray                     // a quote is in the key, or a quote or an equals sign in a value without quotes
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
// key="quoted value", or a key alone, which has an empty value. The key begins
// at byte at, and the next pair is to be looked for from byte end on. After the
// last pair, at is len(s). It accepts any text; callers decide which marks are
// mistakes.
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

// Logfmt looks for some keys in a logfmt line. It stops where all were found. Of
// a key that appears twice, the first counts.
type Logfmt struct {
	keys  []string
	slots []int
}

// Add adds a key, whose value goes to a slot of what Find fills.
func (l *Logfmt) Add(key string, slot int) {
	l.keys, l.slots = append(l.keys, key), append(l.slots, slot)
}

// Len returns how many keys there are.
func (l *Logfmt) Len() int { return len(l.keys) }

// Find puts what it finds in s into out, whose slots must be zero before.
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

// IsLogfmtKey reports whether a key can be in a logfmt line.
func IsLogfmtKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '=' || r == '"' })
}

// Pairs calls f with each key and value of logfmt text, which may have several
// lines, up to the first mistake, and reports whether there is none: a quote or
// an equals sign where none belongs, a string without an end. It is strict as
// decoders are; Logfmt is not.
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

// unquoteLogfmt returns what a value in quotes says; ok is false if an escape or
// a character is not allowed in it.
func unquoteLogfmt(s string, marks Marks) (value string, ok bool) {
	if strings.IndexByte(s, '\n') >= 0 { // a string ends in its line
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
