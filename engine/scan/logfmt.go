package scan

import "strings"

// Logfmt looks for some keys in a logfmt line: key=value, key="quoted
// value", or a key alone, whose value is empty. It stops where all were found.
// Of a key that is there twice, the first counts.
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
		for i < len(s) && s[i] <= ' ' {
			i++
		}
		from := i
		for i < len(s) && s[i] > ' ' && s[i] != '=' {
			i++
		}
		key := s[from:i]
		if i == len(s) && key == "" {
			return
		}
		value, escaped := "", false
		if i < len(s) && s[i] == '=' {
			i++
			if i < len(s) && s[i] == '"' {
				end, esc := stringEnd(s, i+1)
				if end < 0 {
					return
				}
				value, escaped, i = s[i+1:end], esc, end+1
			} else {
				from := i
				for i < len(s) && s[i] > ' ' {
					i++
				}
				value = s[from:i]
			}
		}
		for k, want := range l.keys {
			if want == key && out[l.slots[k]].Kind == Missing {
				if escaped {
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
