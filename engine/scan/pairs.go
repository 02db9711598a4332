package scan

import (
	"strings"
	"unicode/utf8"
)

// Pairs calls f with each key and value of logfmt text, which may have several
// lines, up to the first mistake, and reports whether there is none: a quote or
// an equals sign where none belongs, a string without an end. A key alone has an
// empty value. It is strict as decoders are; Logfmt is not.
//
// Format: https://pkg.go.dev/github.com/go-logfmt/logfmt
func Pairs(s string, f func(key, value string)) bool {
	for i := 0; ; {
		for i < len(s) && s[i] <= ' ' {
			i++
		}
		if i == len(s) {
			return true
		}
		from, plain := i, true
		for i < len(s) && s[i] > ' ' && s[i] != '=' && s[i] != '"' {
			plain = plain && s[i] < utf8.RuneSelf
			i++
		}
		key := s[from:i]
		if key == "" || i < len(s) && s[i] == '"' || !plain && strings.ContainsRune(key, utf8.RuneError) {
			return false
		}
		if i == len(s) || s[i] != '=' {
			f(key, "")
			continue
		}
		i++
		if i < len(s) && s[i] == '"' {
			value, end := quotedPair(s, i+1)
			if end < 0 {
				return false
			}
			f(key, value)
			i = end
			continue
		}
		from = i
		for i < len(s) && s[i] > ' ' {
			if s[i] == '=' || s[i] == '"' {
				return false
			}
			i++
		}
		f(key, s[from:i])
	}
}

// quotedPair returns the value in quotes whose text begins at i, and where what
// follows it begins, -1 if it is none.
func quotedPair(s string, i int) (value string, next int) {
	end, escaped := stringEnd(s, i)
	if end < 0 {
		return "", -1
	}
	value = s[i:end]
	if strings.IndexByte(value, '\n') >= 0 { // a string ends in its line
		return "", -1
	}
	if !escaped {
		return value, end + 1
	}
	value = apostrophes(value)
	if !validEscapes(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
		return "", -1
	}
	return unquoteJSON(string([]rune(value))), end + 1
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
