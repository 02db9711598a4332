package scripttest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// code writes values as a test file in these words could contain them.
type code struct{ words scripting.TestWords }

const maxCodeLine = 70

// value writes a value: a short one in a line, otherwise a line for each item.
func (c code) value(v scripting.Value) string { return c.fit(v, "\n") }

// fit writes a value that begins in a line with the indentation of end, a newline.
func (c code) fit(v scripting.Value, end string) string {
	if s := c.write(v, ""); len(s) <= maxCodeLine {
		return s
	}
	return c.write(v, end)
}

// write writes a value. end is "" for one line, else a newline with the indentation of
// the line that the value begins in.
func (c code) write(v scripting.Value, end string) string {
	in, item := end, c.write
	if end != "" {
		in, item = end+"  ", c.fit
	}
	switch v := v.(type) {
	case *scripting.List:
		open, closing := "[", "]"
		if c.words == scripting.Busted {
			open, closing = "{", "}"
		}
		parts := make([]string, len(v.Items))
		for i, e := range v.Items {
			parts[i] = item(e, in)
		}
		if c.words == scripting.Busted && end == "" {
			return brackets(open, closing, " ", in, end, parts)
		}
		return brackets(open, closing, "", in, end, parts)
	case *scripting.Map:
		parts := make([]string, 0, v.Len())
		for _, k := range sortedKeys(v) {
			e, _ := v.Get(k)
			parts = append(parts, c.key(k)+item(e, in))
		}
		return brackets("{", "}", " ", in, end, parts)
	case string:
		return c.text(v)
	case float64:
		return c.number(v)
	case nil:
		if c.words == scripting.Vitest {
			return "undefined"
		}
	case scripting.Callback, scripting.Sequence:
		return "function"
	}
	return showLeaf(v)
}

// brackets writes items between brackets, in one line if end is "".
func brackets(open, closing, pad, in, end string, parts []string) string {
	switch {
	case len(parts) == 0:
		return open + closing
	case end == "":
		return open + pad + strings.Join(parts, ", ") + pad + closing
	}
	return open + in + strings.Join(parts, ","+in) + "," + end + closing
}

var identifierKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// luaWords cannot be keys without quotes in Lua.
var luaWords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true, "for": true, "function": true, "goto": true, "if": true,
	"in": true, "local": true, "nil": true, "not": true, "or": true, "repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true,
}

func (c code) key(k string) string {
	switch plain := identifierKey.MatchString(k); {
	case c.words == scripting.Vitest && plain:
		return k + ": "
	case c.words == scripting.Vitest:
		return c.text(k) + ": "
	case plain && !luaWords[k]:
		return k + " = "
	}
	return "[" + c.text(k) + "] = "
}

// text writes a string in double quotes.
func (c code) text(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range []byte(s) {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r >= ' ' && r != 0x7f:
			b.WriteByte(r)
		case c.words == scripting.Vitest:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\%03d`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// declare writes a variable with a value. A text of several lines is written as lines.
func (c code) declare(name string, v scripting.Value) string {
	text := textOf(v)
	lines := text != "" && printable(strings.ReplaceAll(text, "\n", ""))
	switch {
	case lines && c.words == scripting.Vitest:
		return "const " + name + " = `" + templateEscapes.Replace(text) + "`;\n"
	case lines:
		level := ""
		for strings.Contains(text+"]", "]"+level+"]") {
			level += "="
		}
		return "local " + name + " = [" + level + "[\n" + text + "]" + level + "]\n" // Lua skips the first newline
	case c.words == scripting.Vitest:
		return "const " + name + " = " + c.value(v) + ";\n"
	}
	return "local " + name + " = " + c.value(v) + "\n"
}

var templateEscapes = strings.NewReplacer("\\", "\\\\", "`", "\\`", "${", "\\${")

func (c code) number(f float64) string {
	lua := c.words == scripting.Busted
	switch {
	case math.IsNaN(f) && lua:
		return "0/0"
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0) && lua:
		return strings.TrimSuffix(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"), "Inf") + "math.huge"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+") + "inity"
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
