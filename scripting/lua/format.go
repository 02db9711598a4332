package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// strFormat is string.format as in C: gopher-lua's passes the format to Go's
// fmt, which has other verbs, and takes any width.
func (v *vm) strFormat(L *lua.LState) int {
	format := L.CheckString(1)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			b.WriteByte(c)
			continue
		}
		if i++; i >= len(format) {
			L.RaiseError("invalid option '%%' to 'format' (ends with %%)")
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		start := i
		for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
			i++
		}
		flags := format[start:i]
		digits := func() string {
			s := i
			for i < len(format) && format[i] >= '0' && format[i] <= '9' {
				i++
			}
			if i-s > 2 {
				L.RaiseError("invalid format (width or precision too long)")
			}
			return format[s:i]
		}
		spec := flags + digits()
		if i < len(format) && format[i] == '.' {
			i++
			spec += "." + digits()
		}
		if i >= len(format) || len(flags) > 5 {
			L.RaiseError("invalid format '%%%s'", format[start:])
		}
		arg++
		v.formatOne(L, &b, spec, format[i], arg)
		if b.Len() > maxString {
			L.RaiseError("cannot make a string of more than %d bytes", maxString)
		}
	}
	v.pushString(L, b.String())
	return 1
}

func (v *vm) formatOne(L *lua.LState, b *strings.Builder, spec string, verb byte, arg int) {
	switch verb {
	case 'c':
		b.WriteByte(byte(L.CheckInt(arg)))
	case 'd', 'i':
		n := float64(L.CheckNumber(arg))
		if notFinite(n) || math.Abs(n) >= 1<<63 {
			fmt.Fprintf(b, plain(spec)+"s", formatNumber(n))
			return
		}
		fmt.Fprintf(b, "%"+strings.ReplaceAll(spec, "#", "")+"d", int64(n))
	case 'u', 'o', 'x', 'X':
		n := float64(L.CheckNumber(arg))
		u := uint64(n)
		if n < 0 {
			u = uint64(int64(n))
		}
		if verb == 'u' {
			verb = 'd'
		}
		fmt.Fprintf(b, "%"+spec+string(verb), u)
	case 'e', 'E', 'f', 'g', 'G':
		n := float64(L.CheckNumber(arg))
		if notFinite(n) {
			fmt.Fprintf(b, plain(spec)+"s", formatNumber(n))
			return
		}
		if (verb == 'g' || verb == 'G') && !strings.Contains(spec, ".") {
			spec += ".6" // C's default; Go's is the shortest that reads back
		}
		fmt.Fprintf(b, "%"+spec+string(verb), n)
	case 's':
		s := v.tostring(L, L.CheckAny(arg))
		_, precision, cut := strings.Cut(spec, ".")
		if n, _ := strconv.Atoi(precision); cut && n < len(s) {
			s = s[:n] // bytes, as in C; Go counts runes
		}
		fmt.Fprintf(b, plain(spec)+"s", s)
	case 'q':
		quote(b, L.CheckString(arg))
	default:
		L.RaiseError("invalid option '%%%s' to 'format'", string(verb))
	}
}

// plain is a format without the flags that only numbers have, and without a
// precision: "%" and the width.
func plain(spec string) string {
	width, _, _ := strings.Cut(spec, ".")
	rest := strings.TrimLeft(width, "-+ #0")
	if strings.Contains(width[:len(width)-len(rest)], "-") {
		return "%-" + rest
	}
	return "%" + rest
}

func notFinite(n float64) bool { return math.IsNaN(n) || math.IsInf(n, 0) }

// formatNumber is a number as tostring and .. have it: the shortest decimal
// that reads back as the same number. Lua's own cuts at 14 digits.
func formatNumber(n float64) string {
	switch {
	case math.IsNaN(n):
		return "nan"
	case math.IsInf(n, 1):
		return "inf"
	case math.IsInf(n, -1):
		return "-inf"
	}
	if a := math.Abs(n); a != 0 && (a < 1e-5 || a >= 1e21) {
		return strconv.FormatFloat(n, 'e', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// quote writes s so that Lua reads it back.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString("\\\n")
		case '\r':
			b.WriteString(`\r`)
		case 0:
			b.WriteString(`\000`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
