package grant

import (
	"errors"
	"strings"
)

// maxEscapes is the maximum number of times that a path may be escaped.
const maxEscapes = 4

// leadsElsewhere returns why a server, or a proxy before it, may interpret an
// escaped path as another path. The path may contain a part that is resolved,
// possibly after it was unescaped twice, after a suffix was cut off, or because
// some character is interpreted as a dot or a slash. Or it may contain bytes
// that end it or are ambiguous. It is enough that one server is known to do
// this: Tomcat interprets ..; as .., IIS %u002e as a dot and a backslash as a
// slash, older servers %c0%ae as a dot.
func leadsElsewhere(escaped string) error {
	for path, n := escaped, 0; ; n++ {
		if i := strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
			return errors.New("has a control character")
		}
		if strings.ContainsAny(path, "\u2215\u2044\uff0f\uff3c\uff0e\u2024") || strings.Contains(path, "\xc0") || strings.Contains(path, "\xc1") {
			return errors.New("has a character that some take for a dot or a slash")
		}
		for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			part, _, _ = strings.Cut(part, ";")
			if part = strings.TrimRight(part, " "); part == "." || part == ".." {
				return errors.New("has . or .. as a part")
			}
		}
		next := unescape(path)
		if next == path {
			return nil
		}
		if n == maxEscapes {
			return errors.New("is escaped too often")
		}
		path = next
	}
}

// unescape replaces the escapes in a path once. Invalid escapes stay.
func unescape(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		rest := path[i:]
		switch {
		case len(rest) >= 3 && rest[0] == '%' && isHex(rest[1:3]):
			b.WriteByte(unhex(rest[1])<<4 | unhex(rest[2]))
			i += 2
		case len(rest) >= 6 && rest[0] == '%' && (rest[1] == 'u' || rest[1] == 'U') && isHex(rest[2:6]):
			b.WriteRune(rune(unhex(rest[2]))<<12 | rune(unhex(rest[3]))<<8 | rune(unhex(rest[4]))<<4 | rune(unhex(rest[5])))
			i += 5
		default:
			b.WriteByte(rest[0])
		}
	}
	return b.String()
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// unhex returns the value of a hexadecimal digit.
func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}
