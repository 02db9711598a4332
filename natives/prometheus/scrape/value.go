package scrape

import (
	"math"
	"strconv"
	"unsafe"

	"github.com/prometheus/prometheus/model/value"
)

var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// parseValue parses the sample value at the beginning of b and returns its
// length. If ok is false, textparse might read the value differently or return an
// error, and must parse it. A value ends at a space, at a line feed or at the end
// of the body.
func parseValue(b []byte) (v float64, n int, ok bool) {
	var (
		mant     uint64
		digits   int
		exp      int
		neg, dot bool
	)
	i := 0
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c == '.' && !dot {
			dot = true
			continue
		}
		if c -= '0'; c > 9 {
			break
		}
		mant = mant*10 + uint64(c)
		digits++
		if dot {
			exp--
		}
	}
	// 19 digits fit into a uint64. Leading zeros count too: numbers with many of
	// them are rare and only take the slower path.
	if digits == 0 || digits > 19 {
		return parseOddValue(b)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		eneg := false
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			eneg = b[i] == '-'
			i++
		}
		e, edigits := 0, 0
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			e = e*10 + int(b[i]-'0')
			if edigits++; edigits > 4 {
				return parseOddValue(b)
			}
		}
		if edigits == 0 {
			return parseOddValue(b)
		}
		if eneg {
			e = -e
		}
		exp += e
	}
	if !endsValue(b, i) {
		return parseOddValue(b)
	}
	// The product or quotient of two exact float64 numbers is rounded once and is
	// therefore correct.
	if mant > 1<<53 || exp < -22 || exp > 22 {
		return parseOddValue(b)
	}
	v = float64(mant)
	if exp < 0 {
		v /= pow10[-exp]
	} else {
		v *= pow10[exp]
	}
	if neg {
		v = -v
	}
	return v, i, true
}

// parseOddValue parses infinities, NaN, and numbers whose nearest float64 takes
// more than one operation to find.
func parseOddValue(b []byte) (v float64, n int, ok bool) {
	for n < len(b) && !endsValue(b, n) {
		switch c := b[n]; {
		case c == 'p' || c == 'P': // textparse does not accept hexadecimal floats
			return 0, 0, false
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '+', c == '-', c == '.':
		default:
			return 0, 0, false
		}
		n++
	}
	if n == 0 {
		return 0, 0, false
	}
	// The string is not retained: an error of ParseFloat copies it.
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(b), n), 64)
	if err != nil {
		return 0, 0, false
	}
	if math.IsNaN(v) {
		v = math.Float64frombits(value.NormalNaN)
	}
	return v, n, true
}

func endsValue(b []byte, i int) bool { return i == len(b) || b[i] == '\n' || b[i] == ' ' }

// parseMillis parses the timestamp of a line in Prometheus text at the beginning
// of b: digits, Unix ms.
func parseMillis(b []byte) (t int64, n int, ok bool) {
	for n < len(b) && b[n]-'0' <= 9 {
		t = t*10 + int64(b[n]-'0')
		if n++; n > 18 {
			return 0, 0, false
		}
	}
	return t, n, n > 0 && endsValue(b, n)
}

// parseSeconds parses the timestamp of an OpenMetrics line at the beginning of b,
// in Unix seconds, as textparse does.
func parseSeconds(b []byte) (t int64, n int, ok bool) {
	v, n, ok := parseValue(b)
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, 0, false
	}
	return int64(v * 1000), n, true
}
